// Fields that hold the id of a chat, a person or the like: found by name, with the name beside it.
// What is typed stays as it is, and without this file fields are typed.

import { ask, combine, make, words } from "./combobox.js";

/** Ids of one field whose names are looked up. */
const MOST_NAMED = 20;

const beside = (field, name) => field.form?.elements[field.name.replace(/[^-]+$/, name)];

/** What is looked for, and the form of its ids: said by the field, or by the choice beside it. */
const kindOf = (field) => field.dataset.choose || beside(field, field.dataset.chooseBy)?.value || "";
const firstOf = (field) => [kindOf(field), field.dataset.takes];
const thenOf = (field) => [field.dataset.then, "number"];

/** Ids of a list are written with spaces, commas or line ends; only the latter two end a name. */
const GAP = /[\s,;，；、]+/, WORD = /[^\s,;，；、]*$/, NAME = /[^\n,;，；、]*$/, END = /[\n,;，；、]|$/;
/** The first id of a line is written: what follows it is looked for word by word. */
const FIRST_ID = /^\s*(?:\S*(?:group|private):\S+|\d{5,}|[0-9A-F]{32})[\s,;，；、]/i;

/** Where the name stands in which the cursor is, and what it is the name of. */
const nameAt = (field) => {
    const at = field.selectionStart, before = field.value.slice(0, at);
    const line = before.slice(before.lastIndexOf("\n") + 1);
    if (field.dataset.then && FIRST_ID.test(line)) {
        const end = at + field.value.slice(at).search(/[\s,;，；、]|$/);
        return [before.search(WORD), end, ...thenOf(field)];
    }
    if (field.tagName !== "TEXTAREA") {
        return [0, field.value.length, ...firstOf(field)];
    }
    return [before.search(NAME), at + field.value.slice(at).search(END), ...firstOf(field)];
};

/** The names of ids of one kind, by id. */
const findNames = async (ids, [kind, takes]) => {
    const known = ids.map((id) => ["is", `${kind}:${id}`]);
    const hits = kind && ids.length ? await ask([["kind", kind], ["takes", takes], ...known]).catch(() => []) : [];
    return hits.map((hit) => [hit.values[takes], hit.label]);
};

const nameIds = async (field, output) => {
    const isList = field.tagName === "TEXTAREA" || field.dataset.then;
    const written = isList ? field.value.split(GAP) : [field.value.trim()];
    const ids = [...new Set(written.filter(Boolean))].slice(0, MOST_NAMED);
    const kinds = [firstOf(field), ...(field.dataset.then ? [thenOf(field)] : [])];
    const names = new Map((await Promise.all(kinds.map((kind) => findNames(ids, kind)))).flat());
    const shown = ids.filter((id) => names.has(id) && names.get(id) !== id);
    const behind = (id) => (ids.length > 1 ? ` (${id})` : "");
    output.replaceChildren(...shown.map((id) => make("li", {}, make("bdi", {}, names.get(id)), behind(id))));
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
        const [begin, end, kind, takes] = nameAt(field), text = field.value.slice(begin, end).trim();
        const asked = [["kind", kind], ["takes", takes], ["q", text]];
        return kind && (text || isAsked) ? ask(asked, signal) : [];
    };
    const choose = (hit, close) => {
        const [begin, end, , takes] = nameAt(field);
        field.setRangeText(hit.values[takes], begin, end, "end");
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
    for (const name of ["formset:added", "htmx:load"]) {
        document.addEventListener(name, (event) => enhanceAll(event.target));
    }
};
