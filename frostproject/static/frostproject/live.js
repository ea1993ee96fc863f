/* Follows what the page shows: every element with data-live="session:12" gets the event
 * "live:changed" whenever that topic has changed, and once after each connection. */
(function () {
    "use strict";

    const LIMIT = 20, SLOWEST = 60000;
    const CLOSED_FOR_GOOD = new Set([4400, 4401]);
    let socket = null, sent = "", pause = 1000, hasEnded = false;
    const missed = new Set();

    function elements() {
        return Array.from(document.querySelectorAll("[data-live]"));
    }

    function topics() {
        return Array.from(new Set(elements().map((one) => one.dataset.live))).slice(0, LIMIT);
    }

    function fire(topic) {
        if (document.hidden) {
            missed.add(topic);
            return;
        }
        for (const one of elements()) {
            if (one.dataset.live === topic) {
                one.dispatchEvent(new CustomEvent("live:changed", { bubbles: false }));
            }
        }
    }

    function show(state) {
        document.documentElement.dataset.liveState = state;
    }

    function watch() {
        const wanted = topics(), frame = JSON.stringify({ watch: wanted });
        if (socket === null) {
            if (wanted.length && !hasEnded) connect();
        } else if (socket.readyState === WebSocket.OPEN && frame !== sent) {
            sent = frame;
            socket.send(frame);
        }
    }

    function onFrame(event) {
        const told = JSON.parse(event.data);
        if (told.changed) {
            fire(told.changed);
        } else if (told.watching) {
            pause = 1000;
            show("on");
            told.watching.forEach(fire);
        } else if (told.error) {
            sent = "";
        }
    }

    function onClose(event) {
        socket = null;
        sent = "";
        show("off");
        hasEnded = CLOSED_FOR_GOOD.has(event.code);
        if (hasEnded) return;
        window.setTimeout(watch, pause * (0.75 + Math.random() / 2));
        pause = Math.min(2 * pause, SLOWEST);
    }

    function connect() {
        const scheme = window.location.protocol === "https:" ? "wss:" : "ws:";
        socket = new WebSocket(scheme + "//" + window.location.host + "/ws/admin/live");
        socket.addEventListener("open", watch);
        socket.addEventListener("message", onFrame);
        socket.addEventListener("close", onClose);
    }

    document.addEventListener("visibilitychange", function () {
        if (document.hidden) return;
        const topicsMissed = Array.from(missed);
        missed.clear();
        topicsMissed.forEach(fire);
    });
    window.addEventListener("online", function () {
        pause = 1000;
        watch();
    });
    document.addEventListener("htmx:afterSettle", watch);
    if (document.readyState === "loading") {
        document.addEventListener("DOMContentLoaded", watch);
    } else {
        watch();
    }
})();
