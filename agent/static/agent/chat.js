/* The conversation: older messages come as one scrolls up, new ones at the bottom, changed ones in
 * their place. Everything that is shown is made by the server; here it is only put where it belongs.
 * `openStream` begins with the chat that is on the page; what was open before is left alone. */
"use strict";

function openStream() {
    const box = document.querySelector(".chat-box");
    if (!box) return null;
    const list = box.querySelector("ol.chat"), button = document.querySelector(".to-newest");
    /* Messages that are asked about again; that make a scroll end; that stay in the page. */
    const MARKS = 60, NEAR = 60, MOST = 200;
    let unseen = 0, isAsking = false, askAgain = false;

    /* The column runs upwards: 0 is its bottom, and places above are negative. */
    const isAtBottom = () => box.scrollTop > -NEAR;
    const messages = () => Array.from(list.querySelectorAll("li[data-message]"));
    const hasNewer = () => list.querySelector(".edge.newer") !== null;

    async function fetchItems(url) {
        const answer = await fetch(url, { headers: { "X-Requested-With": "fetch" } });
        if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        return Array.from(page.body.children).filter((one) => one.localName === "li");
    }

    /* Days that are announced already, and senders that said the line above too. */
    function tidy() {
        let last = "", above = null;
        for (const one of Array.from(list.children)) {
            if (one.classList.contains("day")) {
                if (one.dataset.day === last) {
                    one.remove();
                    continue;
                }
                last = one.dataset.day;
            }
            const speaker = one.dataset.speaker;
            if (speaker) one.classList.toggle("joined", above !== null && above.dataset.speaker === speaker);
            above = one;
        }
    }

    function welcome(items) {
        tidy();
        for (const item of items) if (item.classList.contains("edge")) edges.observe(item);
    }

    /* Put items in without moving what is being read. */
    function keepView(put) {
        const wasAtBottom = isAtBottom(), height = box.scrollHeight;
        put();
        if (!wasAtBottom) box.scrollTop -= box.scrollHeight - height;
    }

    /* A chat that is read to its beginning does not fill the browser: what is far away goes. */
    function dropFar(isOlder) {
        const shown = messages(), over = shown.length - MOST;
        if (over <= 0) return;
        const edge = document.createElement("li"), link = document.createElement("a");
        const last = isOlder ? shown[MOST - 1] : shown[over];
        edge.className = isOlder ? "edge newer" : "edge older";
        edge.dataset.edge = box.dataset.stream + (isOlder ? "?after=" : "?before=") + last.dataset.message;
        link.href = (isOlder ? "?after=" : "?before=") + last.dataset.message;
        link.textContent = "…";
        edge.append(link);
        keepView(() => {
            const next = () => (isOlder ? last.nextElementSibling : last.previousElementSibling);
            while (next()) next().remove();
            if (isOlder) last.after(edge);
            else last.before(edge);
        });
        welcome([edge]);
    }

    async function extend(edge) {
        const url = edge.dataset.edge;
        if (!url || edge.dataset.asked) return;
        edge.dataset.asked = "1";
        try {
            const items = await fetchItems(url);
            const isOlder = edge.classList.contains("older");
            const known = items.filter((one) => !one.id || !document.getElementById(one.id));
            const shown = known.filter((one) => !one.matches(isOlder ? ".edge.newer" : ".edge.older"));
            const put = () => edge.replaceWith(...shown);
            if (isOlder) put();
            else keepView(put);
            welcome(shown);
            dropFar(isOlder);
        } catch (_error) {
            window.setTimeout(() => delete edge.dataset.asked, 3000);
        }
    }

    const edges = new IntersectionObserver(
        (seen) => seen.filter((one) => one.isIntersecting).forEach((one) => extend(one.target)),
        { root: box, rootMargin: "200px 0px" }
    );

    /* --- Live ------------------------------------------------------------------- */

    function newsUrl() {
        const bubbles = messages().slice(-MARKS);
        const newest = (name) => String(Math.max(0, ...Array.from(list.querySelectorAll(`li[data-${name}]`), (one) => Number(one.dataset[name]))));
        const asked = new URLSearchParams({
            after: bubbles.length ? bubbles[bubbles.length - 1].dataset.message : "0",
            act: newest("act"),
            event: newest("event"),
            marks: bubbles.map((one) => one.dataset.message + "." + one.dataset.mark).join(","),
        });
        return box.dataset.news + "?" + asked;
    }

    function keepOpened(old, fresh) {
        const opened = old.querySelectorAll("details"), drawn = fresh.querySelectorAll("details");
        opened.forEach((one, at) => {
            if (one.open && drawn[at]) drawn[at].open = true;
        });
        fresh.classList.toggle("chosen", old.classList.contains("chosen"));
    }

    function update(items) {
        const added = [];
        for (const item of items) {
            const old = item.id && document.getElementById(item.id);
            if (!old) {
                added.push(item);
            } else if (!old.contains(document.activeElement) || old === document.activeElement) {
                const isHere = old === document.activeElement;
                keepOpened(old, item);
                old.replaceWith(item);
                if (isHere) item.focus({ preventScroll: true });
            }
        }
        while (added.length && added[added.length - 1].classList.contains("day")) added.pop();
        if (added.length) list.querySelector(".nothing")?.remove();
        list.append(...added);
        if (added.some((one) => one.dataset.act)) box.dispatchEvent(new CustomEvent("chat:acted", { bubbles: true }));
        welcome(items.filter((one) => one.isConnected));
        return added.filter((one) => one.dataset.message).length;
    }

    async function follow() {
        if (isAsking) {
            askAgain = true;
            return;
        }
        isAsking = true;
        try {
            if (hasNewer()) {
                tell(1);
            } else {
                const items = await fetchItems(newsUrl()), wasAtBottom = isAtBottom();
                let count = 0;
                keepView(() => (count = update(items)));
                if (wasAtBottom) dropFar(false);
                else tell(count);
                if (count) box.dispatchEvent(new CustomEvent("chat:news", { bubbles: true }));
            }
        } catch (_error) {
            /* the next change, or the next connection, asks again */
        }
        isAsking = false;
        if (askAgain) {
            askAgain = false;
            follow();
        }
    }

    function tell(count) {
        unseen += count;
        button.hidden = unseen === 0;
        button.querySelector(".count").textContent = unseen ? String(unseen) : "";
    }

    /* A message that is on the page is shown there. */
    function jump(event) {
        const link = event.target.closest("[data-jump]");
        if (link && show(link.dataset.jump)) event.preventDefault();
    }

    function show(id) {
        const target = document.getElementById(id);
        if (!target || !list.contains(target)) return false;
        list.querySelectorAll(".found").forEach((one) => one.classList.remove("found"));
        target.classList.add("found");
        target.scrollIntoView({ block: "center" });
        return true;
    }

    box.addEventListener("live:changed", follow);
    box.addEventListener("scroll", () => isAtBottom() && unseen && tell(-unseen));
    button.addEventListener("click", () => {
        if (hasNewer()) box.dispatchEvent(new CustomEvent("chat:newest", { bubbles: true }));
        else box.scrollTop = 0;
    });
    document.querySelector(".bench").addEventListener("click", (event) => box.isConnected && jump(event));
    const hash = window.location.hash.slice(1);
    if (!(hash && show(hash)) && hasNewer()) box.scrollTop = -box.scrollHeight;
    window.requestAnimationFrame(() => {
        list.querySelectorAll(".edge[data-edge]").forEach((one) => edges.observe(one));
    });
    return {
        follow,
        /* The key of the newest message, where the end of the chat is on the page; else 0. */
        newest: () => (hasNewer() ? 0 : Number(messages().pop()?.dataset.message || 0)),
    };
}
