/* The list of runs: a run opens beside it, and two that are ticked stand side by side. Without
 * scripts, or where that fails, the links and the form lead to pages. */
(function () {
    "use strict";

    const panel = document.getElementById("run-panel"), list = document.getElementById("result_list");
    const form = document.getElementById("compare");
    if (!panel || !list || !window.htmx) return;
    const body = panel.querySelector(".panel-body"), title = panel.querySelector("h2");
    const whole = panel.querySelector(".open-whole");
    document.documentElement.classList.add("scripts");

    function links() {
        return Array.from(list.querySelectorAll("tbody th a"));
    }

    function mark(href) {
        for (const link of links()) {
            const isOpen = link.getAttribute("href") === href;
            link.closest("tr").classList.toggle("is-open", isOpen);
            link.toggleAttribute("aria-current", isOpen);
        }
    }

    async function show(href, words, isWide) {
        const leave = () => { window.location.href = href; };
        body.addEventListener("htmx:responseError", leave, { once: true });
        await window.htmx.ajax("GET", href, { target: body, select: "#content-main > *", swap: "innerHTML" });
        body.removeEventListener("htmx:responseError", leave);
        if (whole.getAttribute("href") !== href && !body.children.length) return leave();
        whole.href = href;
        title.textContent = words;
        panel.classList.toggle("is-wide", isWide);
        panel.hidden = false;
        panel.scrollTop = 0;
        mark(href);
        if (isWide) panel.scrollIntoView({ block: "nearest" });
    }

    function open(link) {
        window.history.replaceState(null, "", "#run-" + link.textContent.slice(1));
        return show(link.getAttribute("href"), link.textContent, false);
    }

    function close() {
        const link = list.querySelector("a[aria-current]");
        panel.hidden = true;
        body.replaceChildren();
        mark("");
        window.history.replaceState(null, "", window.location.pathname + window.location.search);
        if (link) link.focus();
    }

    list.addEventListener("click", (event) => {
        const link = event.target.closest("tbody th a");
        if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        open(link);
    });

    list.addEventListener("keydown", (event) => {
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        const next = step && links()[links().indexOf(document.activeElement) + step];
        if (!next || !links().includes(document.activeElement)) return;
        event.preventDefault();
        next.focus();
        if (!panel.hidden) open(next);
    });

    document.addEventListener("keydown", (event) => {
        if (event.key === "Escape" && !panel.hidden) close();
    });
    panel.querySelector(".close").addEventListener("click", close);

    // Of three that are ticked, the first is let go.
    const ticked = [];
    function count() {
        form.classList.toggle("two", ticked.length === 2);
    }
    list.addEventListener("change", (event) => {
        if (event.target.name !== "run") return;
        const at = ticked.indexOf(event.target);
        if (at >= 0) ticked.splice(at, 1);
        if (event.target.checked) ticked.push(event.target);
        if (ticked.length > 2) ticked.shift().checked = false;
        count();
    });
    form.addEventListener("submit", (event) => {
        if (ticked.length !== 2) return; // the page says that two are to be chosen
        event.preventDefault();
        show(form.action + "?" + new URLSearchParams(new FormData(form)), form.innerText.trim(), true);
    });
    for (const box of list.querySelectorAll("input[name=run]")) box.checked = false;

    const asked = /^#run-(\d+)$/.exec(window.location.hash);
    const first = asked && links().find((one) => one.textContent === "#" + asked[1]);
    if (first) open(first);
})();
