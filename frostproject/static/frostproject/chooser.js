// Fields that hold the id of a chat, a person or the like: found by name, with the name beside it.
// What is typed stays as it is, and without this file fields are typed.

import { ask, combine, make, words } from "./combobox.js";

/** Ids of one field whose names are looked up. */
const MOST_NAMED = 20;

const beside = (field, name) => field.form?.elements[field.name.replace(/[^-]+$/, name)];

/** What is looked for: said by the field, or by the choice beside it. */
const kindOf = (field) => field.dataset.choose || beside(field, field.dataset.chooseBy)?.value || "";

/** Begin and end of the line in which the cursor is. */
const lineOf = (field) => {
    if (field.tagName !== "TEXTAREA") {
        return [0, field.value.length];
    }
    const at = field.selectionStart, end = field.value.indexOf("\n", at);
    return [field.value.lastIndexOf("\n", at - 1) + 1, end < 0 ? field.value.length : end];
};

const nameIds = async (field, output) => {
    const kind = kindOf(field), takes = field.dataset.takes;
    const ids = [...new Set(field.value.split("\n").map((one) => one.trim()).filter(Boolean))].slice(0, MOST_NAMED);
    let hits = [];
    if (kind && ids.length) {
        const known = ids.map((id) => ["is", `${kind}:${id}`]);
        hits = await ask([["kind", kind], ["takes", takes], ...known]).catch(() => []);
    }
    const named = ids.map((id) => [id, hits.find((hit) => hit.values[takes] === id)?.label]);
    const shown = named.filter(([id, label]) => label && label !== id);
    const behind = (id) => (ids.length > 1 ? ` (${id})` : "");
    const lines = shown.map(([id, label]) => make("li", {}, make("bdi", {}, label), behind(id)));
    output.replaceChildren(...lines);
};

/** Show the list below its field, or above it, over whatever cuts off or scrolls. */
const placeBy = (field, list) => {
    if (!list.showPopover) {
        return; // an older browser: it stands in the page
    }
    const isOpen = list.matches(":popover-open");
    if (list.hidden) {
        return isOpen && list.hidePopover();
    }
    if (!isOpen) {
        list.showPopover();
    }
    const box = field.getBoundingClientRect(), height = list.offsetHeight;
    const isAbove = innerHeight - box.bottom < height && box.top > innerHeight - box.bottom;
    list.style.left = `${Math.max(8, Math.min(box.left, innerWidth - list.offsetWidth - 8))}px`;
    list.style.top = `${isAbove ? Math.max(8, box.top - height) : box.bottom}px`;
};

const enhance = (field) => {
    if (field.name.includes("__prefix__") || field.closest(".chooser")) {
        return;
    }
    const list = make("ul", { class: "search-list", popover: "manual" });
    const output = make("ul", { class: "chosen", "aria-label": words.known });
    const frame = make("span", { class: "chooser" });
    list.hidden = true;
    field.removeAttribute("list"); // what is offered without scripts
    field.before(frame);
    frame.append(field, list, output);
    let isAsked = false; // for the newest ones, without a word
    const place = () => placeBy(field, list);
    const rename = () => nameIds(field, output);
    const find = async (signal) => {
        const kind = kindOf(field), text = field.value.slice(...lineOf(field)).trim();
        const asked = [["kind", kind], ["takes", field.dataset.takes], ["q", text]];
        return kind && (text || isAsked) ? ask(asked, signal) : [];
    };
    const choose = (hit, close) => {
        const [begin, end] = lineOf(field), value = hit.values[field.dataset.takes];
        field.setRangeText(value, begin, end, "end");
        for (const name of (field.dataset.fills || "").split(" ").filter(Boolean)) {
            const other = beside(field, name);
            if (other && !other.value) {
                other.value = hit.values[name] || "";
                other.dispatchEvent(new Event("change", { bubbles: true }));
            }
        }
        close();
        field.dispatchEvent(new Event("change", { bubbles: true }));
    };
    const { look, close } = combine(field, list, { find, choose, place });
    field.addEventListener("keydown", (event) => {
        if (event.key === "ArrowDown" && list.hidden && (event.altKey || field.tagName === "INPUT")) {
            isAsked = true;
            look();
            isAsked = false;
        }
    });
    field.addEventListener("change", rename);
    window.addEventListener("scroll", place, { capture: true, passive: true });
    window.addEventListener("resize", place);
    field.addEventListener("blur", close);
    beside(field, field.dataset.chooseBy)?.addEventListener("change", rename);
    rename();
};

export const startChoosers = () => {
    const enhanceAll = (root) => root.querySelectorAll("[data-takes]").forEach(enhance);
    enhanceAll(document);
    document.addEventListener("formset:added", (event) => enhanceAll(event.target));
};
