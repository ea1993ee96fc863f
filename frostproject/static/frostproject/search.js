// Search from everywhere, by Ctrl+K or the button. Without it the button is a link to the page of the
// search.

import { ask, combine, make, opener, words } from "./combobox.js";
import { startChoosers } from "./chooser.js";

// What was used is kept by its key alone, and named by the server as the reader may see it.
const store = `search-used-${words.user}`;
const used = () => {
    try {
        return JSON.parse(localStorage.getItem(store) || "[]").slice(0, 8);
    } catch {
        return [];
    }
};
const input = make("input", { type: "search", maxlength: "100", placeholder: words.hint, "aria-label": words.hint });
const list = make("ul", {});
const dialog = make("dialog", { id: "search-palette", "aria-label": opener.textContent.trim() }, input, list);
const go = (hit) => {
    try {
        localStorage.setItem(store, JSON.stringify([hit.key, ...used().filter((key) => key !== hit.key)].slice(0, 8)));
    } catch { /* no room, or not allowed */ }
    dialog.close();
    location.assign(hit.url);
};
const find = async (signal) => {
    const text = input.value.trim(), before = used();
    const found = await ask(text ? [["q", text]] : before.map((key) => ["is", key]), signal);
    const place = (hit) => (before.includes(hit.key) ? before.indexOf(hit.key) : before.length);
    return found.sort((one, other) => place(one) - place(other));
};
const palette = combine(input, list, { find, choose: go, isFirstMarked: true });
const open = () => {
    if (!dialog.open) {
        document.body.append(dialog);
        dialog.showModal();
        input.select();
        palette.look();
    }
};
opener.setAttribute("role", "button");
opener.setAttribute("aria-haspopup", "dialog");
opener.setAttribute("aria-keyshortcuts", "Control+K Meta+K");
opener.addEventListener("click", (event) => (event.preventDefault(), open()));
dialog.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.isComposing) {
        event.preventDefault(); // in a field of a search it would empty it first
        dialog.close();
    }
});
dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "k") {
        event.preventDefault();
        open();
    }
});

// A field that a hit leads to.
const reveal = () => {
    const field = location.hash.startsWith("#id_") && document.getElementById(location.hash.slice(1));
    if (field) {
        field.closest("details")?.setAttribute("open", "");
        field.scrollIntoView({ block: "center" });
        field.focus({ preventScroll: true });
    }
};
window.addEventListener("hashchange", reveal);
window.addEventListener("load", reveal);

startChoosers();
