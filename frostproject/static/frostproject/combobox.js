// A line or a text with a list below it of what the server finds.

export const opener = document.getElementById("search-opener");
export const words = opener.dataset;
const describe = (one, attributes) =>
    Object.entries(attributes).forEach(([name, value]) => one.setAttribute(name, value));
export const make = (tag, attributes, ...inside) => {
    const one = document.createElement(tag);
    describe(one, attributes);
    one.append(...inside);
    return one;
};
export const ask = async (parameters, signal) => {
    const answer = await fetch(`${words.results}?${new URLSearchParams(parameters)}`, { signal });
    if (!answer.ok || answer.redirected) {
        throw new Error("no results");
    }
    return (await answer.json()).hits;
};
let lists = 0;

// A combobox: `find` the hits for what is typed, `choose` one of them, `place` the list that has
// changed.
export const combine = (input, list, { find, choose, place = () => {}, isFirstMarked = false }) => {
    const id = `search-list-${(lists += 1)}`;
    let hits = [], at = -1, timer = 0, running = null;
    describe(list, { id, role: "listbox", "aria-label": words.hint });
    const isLine = input.tagName === "INPUT"; // a text of several lines takes no other role
    describe(input, { "aria-autocomplete": "list", "aria-controls": id, autocomplete: "off" });
    if (isLine) {
        describe(input, { role: "combobox", "aria-expanded": "false" });
    } else {
        describe(input, { "aria-haspopup": "listbox" });
    }
    const mark = (next) => {
        at = next;
        [...list.children].forEach((one, index) => one.setAttribute("aria-selected", String(index === at)));
        list.children[at]?.scrollIntoView({ block: "nearest" });
        if (at < 0) {
            input.removeAttribute("aria-activedescendant");
        } else {
            input.setAttribute("aria-activedescendant", `${id}-${at}`);
        }
    };
    const show = (found, nothing = "") => {
        hits = found;
        const option = (hit, index) => make("li", { role: "option", id: `${id}-${index}` },
            make("bdi", { class: "search-label" }, hit.label),
            make("bdi", { class: "search-note" }, hit.note),
            make("span", { class: "search-kind" }, hit.kind_name));
        list.replaceChildren(...hits.map(option));
        if (!hits.length && nothing) {
            list.append(make("li", { role: "option", "aria-disabled": "true", id: `${id}-0` }, nothing));
        }
        list.hidden = !list.children.length;
        place();
        if (isLine) {
            input.setAttribute("aria-expanded", String(!list.hidden));
        }
        mark(isFirstMarked && hits.length ? 0 : -1);
    };
    const close = () => (clearTimeout(timer), running?.abort(), show([]));
    const look = async () => {
        running?.abort();
        running = new AbortController();
        try {
            show(await find(running.signal), isFirstMarked ? words.none : "");
        } catch (error) {
            if (error.name !== "AbortError") {
                show([], isFirstMarked ? words.failed : "");
            }
        }
    };
    input.addEventListener("input", () => (clearTimeout(timer), timer = setTimeout(look, 150)));
    input.addEventListener("keydown", (event) => {
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (event.isComposing || list.hidden) {
            return; // keys of an input method choose signs
        }
        if (step && hits.length) {
            mark(at < 0 && step < 0 ? hits.length - 1 : (at + step + hits.length) % hits.length);
        } else if (event.key === "Enter" && hits[at]) {
            choose(hits[at], close);
        } else if (event.key === "Escape" && !isFirstMarked) {
            close();
        } else {
            return;
        }
        event.preventDefault();
    });
    list.addEventListener("mousedown", (event) => event.preventDefault()); // the focus stays
    list.addEventListener("click", (event) => {
        const hit = hits[[...list.children].indexOf(event.target.closest("li"))];
        if (hit) {
            choose(hit, close);
        }
    });
    return { look, close };
};
