/* The workbench around a chat: the list at its left that stays, the panel at its right that shows
 * what was clicked, acts that answer on the page, and the keyboard. Links and forms are those that
 * work without this as well: here their pages are fetched in part, and put where they belong. */
(function () {
    "use strict";

    const bench = document.querySelector(".bench");
    if (!bench) return;
    const box = bench.querySelector(".list-box"), rows = document.getElementById("result_list");
    const search = document.getElementById("searchbar");
    let stream = null, wanted = 0;

    /* --- Parts of pages ----------------------------------------------------------- */

    async function ask(url, part, options) {
        const answer = await fetch(url, { ...options, headers: { "X-Part": part } });
        if (answer.redirected && answer.url.includes("/login/")) window.location.reload();
        if (!answer.ok) throw new Error(String(answer.status));
        return new DOMParser().parseFromString(await answer.text(), "text/html");
    }

    /* Each element with an id takes the place of the one that has it; a region that readers of
     * screens follow stays, and has what is in it exchanged. */
    function place(page) {
        for (const fresh of Array.from(page.querySelectorAll("body > [id]"))) {
            const old = document.getElementById(fresh.id);
            if (old && old.getAttribute("role") === "status") old.replaceChildren(...fresh.childNodes);
            else if (old) old.replaceWith(fresh);
        }
        document.dispatchEvent(new Event("htmx:afterSettle")); // for what follows every page
    }

    function tell(words) {
        const list = document.createElement("ul"), line = document.createElement("li");
        list.className = "messagelist";
        line.className = "error";
        line.textContent = words;
        list.append(line);
        document.getElementById("outcome").replaceChildren(list);
    }

    /* --- The list ----------------------------------------------------------------- */

    const edge = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && more(), { root: box });
    const open = () => document.getElementById("bench-chat")?.dataset.page || "";

    async function more() {
        const last = rows.querySelector(".edge");
        if (!last || last.dataset.asked) return;
        last.dataset.asked = "1";
        try {
            const page = await ask(last.querySelector("a").href, "rows");
            const items = Array.from(page.querySelectorAll("body > li"));
            last.replaceWith(...items.filter((one) => !one.id || !document.getElementById(one.id)));
            welcome();
        } catch (_error) {
            delete last.dataset.asked;
        }
    }

    /* The newest chats, in their order; those below stay. */
    async function renew(isNew) {
        const page = await ask(box.dataset.rows, "rows"), at = document.activeElement?.closest?.("#result_list li");
        const items = Array.from(page.querySelectorAll("body > li")).filter((one) => isNew || one.id);
        if (isNew) {
            rows.replaceChildren(...items);
        } else {
            for (const one of items) document.getElementById(one.id)?.remove();
            rows.prepend(...items);
            if (items.length) rows.querySelectorAll(".nothing").forEach((one) => one.remove());
        }
        welcome();
        if (at?.id) document.getElementById(at.id)?.querySelector("a").focus({ preventScroll: true });
    }

    function welcome() {
        for (const link of rows.querySelectorAll("li > a")) {
            if (new URL(link.href).pathname === open()) link.setAttribute("aria-current", "page");
            else link.removeAttribute("aria-current");
        }
        rows.querySelectorAll(".edge").forEach((one) => edge.observe(one));
        markUnread();
    }

    /* Unread is what came after the newest message that was seen in this browser, by this user. In
     * chats that he never opened, after the first time that he looked at the list. */
    const memory = "seen-" + bench.dataset.user;
    function seen() {
        try {
            return JSON.parse(window.localStorage.getItem(memory)) || {};
        } catch (_error) {
            return {};
        }
    }

    function note(chat, newest) {
        const known = seen();
        if (!newest || (known[chat] || 0) >= newest) return;
        known[chat] = newest;
        try {
            window.localStorage.setItem(memory, JSON.stringify(known));
        } catch (_error) {
            /* nothing is remembered where the browser keeps nothing */
        }
    }

    function markUnread() {
        const all = Array.from(rows.querySelectorAll("li[id]"));
        if (!seen().first) note("first", Math.max(1, ...all.map((one) => Number(one.dataset.newest))));
        if (stream && !document.hidden) note("c" + open().match(/\d+/)?.[0], stream.newest());
        const known = seen();
        for (const one of all) {
            const isUnread = Number(one.dataset.newest) > (known[one.id] || known.first);
            one.classList.toggle("has-unread", isUnread);
            one.querySelector(".unread").hidden = !isUnread;
        }
    }

    let pause = 0, asked = search?.value;
    async function find() {
        window.clearTimeout(pause);
        if (asked === (asked = search.value)) return;
        const url = new URL(search.form.action);
        for (const [name, value] of new FormData(search.form)) if (value) url.searchParams.set(name, value);
        box.dataset.rows = url.href;
        await renew(true).catch(() => undefined);
    }

    search?.addEventListener("input", () => {
        window.clearTimeout(pause);
        pause = window.setTimeout(find, 250);
    });
    box.addEventListener("live:changed", () => renew().catch(() => undefined));
    document.addEventListener("visibilitychange", markUnread);

    /* --- Chats and the panel --------------------------------------------------------- */

    function begin() {
        const chat = document.getElementById("bench-chat");
        bench.classList.toggle("has-chat", Boolean(chat.dataset.page));
        bench.classList.toggle("has-panel", document.getElementById("panel").childElementCount > 0);
        if (chat.dataset.title) document.title = chat.dataset.title + " | " + document.title.split(" | ").slice(-2).join(" | ");
        stream = openStream();
        ready();
        welcome();
        const own = chat.querySelector("#acts a[data-panel]");
        const isWide = window.matchMedia("(min-width: 1500px)").matches;
        if (own && isWide && !bench.classList.contains("has-panel")) openPanel(own.href, true, true).catch(() => undefined);
    }

    async function openChat(url, isBack) {
        const mine = ++wanted;
        bench.setAttribute("aria-busy", "true");
        try {
            const page = await ask(url, "chat");
            if (mine !== wanted) return;
            if (!page.getElementById("bench-chat")) throw new Error("another page");
            if (!isBack) window.history.pushState(null, "", url);
            place(page);
            begin();
            document.getElementById("chat")?.focus({ preventScroll: true });
        } catch (_error) {
            window.location.assign(url);
        }
        bench.removeAttribute("aria-busy");
    }

    async function openPanel(url, isBack, isUnasked) {
        const panel = document.getElementById("panel"), mine = ++wanted;
        const page = await ask(url, "panel");
        if (mine !== wanted) return;
        if (page.getElementById("panel")) {
            place(page);
        } else { // a page of its own, such as that of a person
            const close = document.createElement("a"), title = document.createElement("h2"), own = document.createElement("a");
            close.className = "panel-close";
            close.href = open();
            close.textContent = "×";
            close.setAttribute("aria-label", document.getElementById("outcome").dataset.dismiss);
            own.href = url;
            own.textContent = page.querySelector("h1")?.textContent || page.title;
            title.append(own);
            panel.replaceChildren(close, title, ...page.getElementById("content-main").childNodes);
        }
        const address = new URL(url, window.location);
        if (!isBack && address.pathname === open()) window.history.pushState(null, "", url);
        bench.classList.add("has-panel");
        choose(document.getElementById(address.searchParams.get("panel") || ""));
        if (!isUnasked) document.getElementById("panel").focus({ preventScroll: true });
    }

    /* While a run that it shows goes on, the panel follows. */
    bench.addEventListener("live:changed", async (event) => {
        const panel = event.target.closest("#panel"), mine = wanted;
        if (!panel) return;
        const page = await ask(window.location.href, "panel").catch(() => undefined);
        const fresh = page?.getElementById("panel"), isRead = panel.contains(document.activeElement);
        if (!fresh || mine !== wanted || fresh.textContent === panel.textContent) return;
        place(page);
        if (isRead) document.getElementById("panel").focus({ preventScroll: true });
    }, true);

    function closePanel() {
        const chosen = bench.querySelector("li.chosen");
        document.getElementById("panel").replaceChildren();
        bench.classList.remove("has-panel");
        window.history.replaceState(null, "", open());
        (chosen || document.getElementById("chat"))?.focus({ preventScroll: true });
    }

    function choose(bubble) {
        bench.querySelectorAll("li.chosen").forEach((one) => one.classList.remove("chosen"));
        bubble?.classList.add("chosen");
    }

    window.addEventListener("popstate", () => {
        const here = window.location;
        if (here.pathname === open() && here.search.includes("panel=")) openPanel(here.href, true);
        else if (here.pathname === open() && bench.classList.contains("has-panel")) closePanel();
        else if (/\/\d+\/change\/$/.test(here.pathname)) openChat(here.href, true);
        else here.reload();
    });

    bench.addEventListener("click", (event) => {
        const link = event.target.closest("a"), bubble = event.target.closest("li[data-message]");
        if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
        if (link && link.closest("#result_list li[id]")) {
            event.preventDefault();
            openChat(link.href);
        } else if (link && "panel" in link.dataset) {
            event.preventDefault();
            openPanel(link.href).catch(() => window.location.assign(link.href));
        } else if (link && link.className === "panel-close") {
            event.preventDefault();
            closePanel();
        } else if (bubble && !event.target.closest("a, button, summary, details, img, audio") && !String(window.getSelection())) {
            bubble.querySelector("a.why").click();
        }
    });
    bench.addEventListener("chat:newest", () => openChat(open()));
    bench.addEventListener("chat:news", markUnread);
    bench.addEventListener("chat:acted", () => ask(open(), "head").then(placeHead).catch(() => undefined));

    /* Without a word: what became of an act of this page stays where it is. */
    function placeHead(page) {
        page.getElementById("outcome")?.remove();
        if (!document.querySelector(".find:focus-within")) place(page);
    }

    /* --- Acts ------------------------------------------------------------------------ */

    bench.addEventListener("submit", async (event) => {
        const form = event.target, button = event.submitter;
        if (form.method !== "post" || "plain" in form.dataset || event.defaultPrevented) return;
        event.preventDefault();
        const body = new FormData(form, button), buttons = form.querySelectorAll("button");
        buttons.forEach((one) => (one.disabled = true));
        try {
            const page = await ask(button?.getAttribute("formaction") || form.action, "head", { method: "POST", body });
            const isDone = !page.querySelector("#outcome .error");
            place(page);
            if (form.id === "compose" && isDone) empty(form);
            if (!document.getElementById("outcome").checkVisibility()) closePanel(); // it fills a phone
            if (document.activeElement === document.body) bench.querySelector("#acts button")?.focus();
            stream?.follow();
        } catch (_error) {
            tell(bench.dataset.failed);
        }
        buttons.forEach((one) => (one.disabled = false));
    });

    function count(form) {
        form.querySelector(".files .count").textContent = form.elements.pictures.files.length || "";
    }

    function empty(form) {
        form.elements.text.value = "";
        form.elements.pictures.value = "";
        count(form);
        if (form.elements.mention) form.elements.mention.value = "";
        quote("", "");
    }

    function quote(pk, said) {
        const form = document.getElementById("compose");
        form.elements.quote.value = pk;
        form.querySelector("[data-quoted]").textContent = said;
        form.querySelector("[data-quoting]").hidden = !pk;
        form.elements.text.focus();
    }

    bench.addEventListener("click", (event) => {
        const link = event.target.closest("[data-quote]"), isOff = event.target.closest("[data-unquote]");
        if (!(link || isOff) || !document.getElementById("compose")) return;
        event.preventDefault();
        const said = link?.closest("li").querySelector(".said");
        quote(link ? link.dataset.quote : "", said ? said.textContent.trim().slice(0, 120) : "");
    });

    function ready() {
        const form = document.getElementById("compose");
        form?.elements.text.addEventListener("keydown", (event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.isComposing) {
                event.preventDefault();
                form.requestSubmit();
            }
        });
        form?.elements.text.addEventListener("paste", (event) => {
            const pasted = Array.from(event.clipboardData.files).filter((one) => one.type.startsWith("image/"));
            if (!pasted.length) return;
            event.preventDefault();
            const all = new DataTransfer();
            for (const one of [...form.elements.pictures.files, ...pasted]) all.items.add(one);
            form.elements.pictures.files = all.files;
            count(form);
        });
        form?.elements.pictures.addEventListener("change", () => count(form));
    }

    /* --- The keyboard ------------------------------------------------------------------ */

    /* Up and down in the conversation where the focus is there, else in the list. */
    function step(by) {
        const at = document.activeElement, isInChat = Boolean(at?.closest(".chat-box"));
        const found = isInChat ? ".chat-box li[data-message]" : "#result_list li[id] > a";
        const all = Array.from(bench.querySelectorAll(found));
        const here = all.findIndex((one) => one.contains(at) || (!isInChat && one.parentNode.contains(at)));
        const current = all.findIndex((one) => one.hasAttribute("aria-current"));
        const start = isInChat ? all.length : current >= 0 ? current : -1;
        const next = all[Math.min(Math.max((here >= 0 ? here : start) + by, 0), all.length - 1)];
        next?.focus();
        next?.scrollIntoView({ block: "nearest" });
    }

    const KEYS = {
        j: () => step(1),
        k: () => step(-1),
        "/": () => search?.focus(),
        r: () => {
            const bubble = document.activeElement?.closest("li[data-message]");
            const link = bubble?.querySelector("[data-quote]");
            if (link) link.click();
            else document.getElementById("compose-text")?.focus();
        },
        Escape: () => bench.classList.contains("has-panel") && closePanel(),
    };
    document.addEventListener("keydown", (event) => {
        const field = event.target.closest("input, textarea, select, [contenteditable]");
        if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return;
        if (document.querySelector("dialog[open]")) return;
        if (field) {
            if (event.key === "Escape" && field.closest(".bench")) document.getElementById("chat")?.focus();
            if (event.key === "Enter" && field === search) {
                event.preventDefault();
                find().then(() => rows.querySelector("li[id] > a")?.focus());
            }
        } else if (event.key === "Enter" && event.target.matches("li[data-message]")) {
            event.target.querySelector("a.why").click();
        } else if (KEYS[event.key]) {
            if (event.key !== "Escape") event.preventDefault();
            KEYS[event.key]();
        }
    });

    begin();
})();
