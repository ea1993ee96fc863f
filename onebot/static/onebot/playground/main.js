// The playground: a client of OneBot 11 in the browser.

import { $, post, root, say } from "./dom.js";
import { drawChat, showTab, startChat } from "./chat.js";
import { closeMenus, drawComposer, startComposer } from "./composer.js";
import { link } from "./link.js";
import { drawLists, sendOwners, startLists } from "./lists.js";
import { forgetRun, startRun } from "./run.js";
import { changed, forgetAll } from "./store.js";

let drawing = 0;

function draw() {
  drawing = 0;
  drawLists();
  drawChat();
  drawComposer();
}

document.addEventListener("play:changed", () => {
  drawing ||= requestAnimationFrame(draw);
});

async function erase() {
  if (!confirm(say("eraseAsk"))) return;
  try {
    const { erased } = await post(root.dataset.eraseUrl);
    forgetAll();
    forgetRun();
    sendOwners();
    $("play-hint").textContent = say("erased", { count: erased });
  } catch (error) {
    $("play-hint").textContent = say(error.message === "failed" ? "eraseFailed" : error.message);
  }
}

/** A superuser erases the playground of another. */
async function eraseOther({ target }) {
  if (!confirm(say("eraseAsk"))) return;
  try {
    const { erased } = await post(root.dataset.eraseUrl, { account: target.dataset.erase });
    $("play-others-hint").textContent = say("erased", { count: erased });
    target.disabled = true;
  } catch {
    $("play-others-hint").textContent = say("eraseFailed");
  }
}

function startTabs() {
  const tabs = [...document.querySelectorAll("#play-tabs [role=tab]")];
  tabs.forEach((tab, index) => {
    tab.addEventListener("click", () => showTab(tab.dataset.tab));
    tab.addEventListener("keydown", ({ key }) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
      if (!step) return;
      const next = tabs[(index + step + tabs.length) % tabs.length];
      showTab(next.dataset.tab);
      next.focus();
    });
  });
  showTab("chat");
}

document.addEventListener("click", ({ target }) => closeMenus(target.closest(".play-menu")));
document.addEventListener("keydown", ({ key }) => key === "Escape" && closeMenus());
$("play-reconnect").addEventListener("click", () => link.connect());
$("play-erase").addEventListener("click", erase);
for (const other of document.querySelectorAll("[data-erase]")) other.addEventListener("click", eraseOther);
document.addEventListener("play:connected", sendOwners);

startChat();
startLists();
startComposer();
startTabs();
startRun();
changed();
link.connect();
