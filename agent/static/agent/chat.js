/* The page of a chat: older messages come as one scrolls up, new ones at the bottom, changed ones
 * in their place. Everything that is shown is made by the server; here it is only put where it
 * belongs. */
(function () {
    "use strict";

    const box = document.querySelector(".chat-box");
    if (!box) return;
    const list = box.querySelector("ol.chat");
    const button = document.querySelector(".to-newest");
    const MARKS = 60, NEAR = 60;
    let unread = 0, isAsking = false, askAgain = false;

    /* The column runs upwards: 0 is its bottom, and places above are negative. */
    function isAtBottom() {
        return box.scrollTop > -NEAR;
    }

    async function fetchItems(url) {
        const answer = await fetch(url, { headers: { "X-Requested-With": "fetch" } });
        if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        return Array.from(page.body.children).filter((one) => one.localName === "li");
    }

    /* Days that are announced already, by a line above. */
    function dropRepeatedDays() {
        let last = "";
        for (const day of list.querySelectorAll("li.day")) {
            if (day.dataset.day === last) day.remove();
            else last = day.dataset.day;
        }
    }

    function welcome(items) {
        dropRepeatedDays();
        for (const item of items) {
            if (item.isConnected && window.htmx) window.htmx.process(item);
            if (item.classList.contains("edge")) edges.observe(item);
        }
    }

    /* Put items in without moving what is being read. */
    function keepView(put) {
        const wasAtBottom = isAtBottom(), height = box.scrollHeight;
        put();
        if (!wasAtBottom) box.scrollTop -= box.scrollHeight - height;
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
        const bubbles = Array.from(list.querySelectorAll("li[data-message]")).slice(-MARKS);
        const acts = list.querySelectorAll("li[data-act]");
        const asked = new URLSearchParams({
            after: bubbles.length ? bubbles[bubbles.length - 1].dataset.message : "0",
            act: String(Math.max(0, ...Array.from(acts, (one) => Number(one.dataset.act)))),
            marks: bubbles.map((one) => one.dataset.message + "." + one.dataset.mark).join(","),
        });
        return box.dataset.news + "?" + asked;
    }

    function keepOpened(old, fresh) {
        const opened = old.querySelectorAll("details"), drawn = fresh.querySelectorAll("details");
        opened.forEach((one, at) => {
            if (one.open && drawn[at]) drawn[at].open = true;
        });
    }

    function update(items) {
        const added = [];
        for (const item of items) {
            const old = item.id && document.getElementById(item.id);
            if (!old) {
                added.push(item);
            } else if (!old.contains(document.activeElement)) {
                keepOpened(old, item);
                old.replaceWith(item);
            }
        }
        while (added.length && added[added.length - 1].classList.contains("day")) added.pop();
        list.append(...added);
        if (added.some((one) => one.dataset.act)) document.getElementById("chat-state")?.dispatchEvent(new Event("chat:acted"));
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
            if (list.querySelector(".edge.newer")) {
                tell(1);
            } else {
                const items = await fetchItems(newsUrl()), wasAtBottom = isAtBottom();
                let count = 0;
                keepView(() => (count = update(items)));
                if (!wasAtBottom) tell(count);
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
        unread += count;
        button.hidden = unread === 0;
        button.querySelector(".count").textContent = unread ? String(unread) : "";
    }

    function toNewest() {
        if (list.querySelector(".edge.newer")) {
            window.location.assign(button.dataset.newest);
        } else {
            box.scrollTop = 0;
        }
    }

    /* A quoted message that is on the page is shown there. */
    function jump(event) {
        const link = event.target.closest("[data-jump]");
        const target = link && document.getElementById(link.dataset.jump);
        if (!target) return;
        event.preventDefault();
        list.querySelectorAll(".found").forEach((one) => one.classList.remove("found"));
        target.classList.add("found");
        target.scrollIntoView({ block: "center" });
    }

    box.addEventListener("live:changed", follow);
    box.addEventListener("scroll", () => isAtBottom() && unread && tell(-unread));
    button.addEventListener("click", toNewest);
    list.addEventListener("click", jump);
    if (window.location.hash) {
        const target = document.getElementById(window.location.hash.slice(1));
        if (target && list.contains(target)) target.scrollIntoView({ block: "center" });
    } else if (list.querySelector(".edge.newer")) {
        box.scrollTop = -box.scrollHeight;
    }
    window.requestAnimationFrame(() => {
        list.querySelectorAll(".edge[data-edge]").forEach((one) => edges.observe(one));
    });
})();
