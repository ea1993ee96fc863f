// What every page of the admin has: the menus, closed filters on phones, what became of an act, and
// the token that htmx sends along.
"use strict";
{
    const button = document.getElementById("menu-button");
    const main = document.getElementById("main");
    const menu = document.getElementById("nav-sidebar");
    const show = (open) => {
        main.classList.toggle("menu-open", open);
        button.setAttribute("aria-expanded", String(open));
    };
    if (button && menu) {
        button.addEventListener("click", () => {
            const open = !main.classList.contains("menu-open");
            show(open);
            if (open) {
                (menu.querySelector("[aria-current]") || menu.querySelector("a")).focus();
            }
        });
        menu.addEventListener("keydown", (event) => {
            if (event.key === "Escape" && main.classList.contains("menu-open")) {
                show(false);
                button.focus();
            }
        });
    }

    const user = document.getElementById("user-menu");
    if (user) {
        document.addEventListener("click", (event) => {
            if (!user.contains(event.target)) {
                user.open = false;
            }
        });
        user.addEventListener("keydown", (event) => {
            if (event.key === "Escape" && user.open) {
                user.open = false;
                user.firstElementChild.focus();
            }
        });
    }

    const drawer = document.getElementById("filter-drawer");
    if (drawer && window.matchMedia("(max-width: 767px)").matches) {
        drawer.open = false; // the conditions in force stand above it, and the rows below
    }

    // What became of an act. Readers of screens hear what changes in a region, not what a page
    // comes with: the button that comes later has all of it read.
    const offerDismissal = () => {
        const outcome = document.getElementById("outcome");
        if (!outcome || !outcome.querySelector(".messagelist") || outcome.querySelector(".dismiss")) return;
        const dismiss = document.createElement("button");
        dismiss.type = "button";
        dismiss.className = "dismiss";
        dismiss.textContent = "×";
        dismiss.setAttribute("aria-label", outcome.dataset.dismiss);
        dismiss.addEventListener("click", () => {
            outcome.replaceChildren();
            document.getElementById("content-start").focus({ preventScroll: true });
        });
        outcome.append(dismiss);
    };
    window.setTimeout(offerDismissal, 300);
    document.addEventListener("htmx:afterSettle", offerDismissal);

    // A text that scrolls by itself can be reached and scrolled by keyboard.
    const reach = (root) => {
        for (const text of root.querySelectorAll("pre.json, .words, .scrolled, .results")) {
            if (text.scrollHeight > text.clientHeight + 1 || text.scrollWidth > text.clientWidth + 1) {
                const row = text.closest("details, .form-row, section, .module");
                const name = row && row.querySelector("summary, label, h2, h3");
                text.tabIndex = 0;
                text.setAttribute("role", "region");
                text.setAttribute("aria-label", (name ? name.textContent : document.title).trim());
            }
        }
    };
    reach(document);
    document.addEventListener("htmx:afterSettle", (event) => reach(event.target));
    document.addEventListener("toggle", (event) => reach(event.target), true);

    document.addEventListener("htmx:configRequest", (event) => {
        const token = document.querySelector('meta[name="csrf-token"]');
        if (token && event.detail.verb !== "get") {
            event.detail.headers["X-CSRFToken"] = token.content;
        }
    });
}
