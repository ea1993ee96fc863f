// The connection: a token for each attempt, heartbeats, and trying again.

import { $, post, root, say } from "./dom.js";
import { answerAction } from "./actions.js";
import { heartbeatEvent, lifecycleEvent } from "./events.js";

const HEARTBEAT_MS = 15_000;
const WAITS = [1, 2, 5, 10, 20, 30];
const REPLACED = 4009;
const FORBIDDEN = 4003;

export const link = { send, cut, connect, isOpen: () => socket?.readyState === WebSocket.OPEN };

let socket = null;
let heartbeat = 0;
let retry = 0;
let failures = 0;

/** Write a frame; false where there is no connection. */
function send(frame) {
  if (!link.isOpen()) return false;
  socket.send(JSON.stringify(frame));
  return true;
}

/** End the connection as a crash of the client would, and come back. */
function cut() {
  socket?.close();
}

async function connect() {
  clearTimeout(retry);
  show("connecting", say("connecting"));
  let token;
  try {
    ({ token } = await post(root.dataset.tokenUrl));
  } catch (error) {
    if (error.message === "signedOut" || error.message === "forbidden") return stop(say(error.message));
    return again("closed");
  }
  const url = new URL(root.dataset.socketPath, location.href);
  url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  url.searchParams.set("access_token", token);
  const mine = (socket = new WebSocket(url));
  let opened = false;
  mine.addEventListener("open", () => {
    opened = true;
    failures = 0;
    show("connected", say("connected"));
    send(lifecycleEvent());
    clearInterval(heartbeat);
    heartbeat = setInterval(() => send(heartbeatEvent(HEARTBEAT_MS)), HEARTBEAT_MS);
    document.dispatchEvent(new CustomEvent("play:connected"));
  });
  mine.addEventListener("message", ({ data }) => {
    const frame = JSON.parse(data);
    if (frame.action) answerAction(frame, link);
  });
  mine.addEventListener("close", ({ code }) => {
    clearInterval(heartbeat);
    if (socket !== mine) return;
    if (code === REPLACED) return stop(say("replaced"));
    if (code === FORBIDDEN) return stop(say("forbidden"));
    again(opened ? "closed" : "refused");
  });
}

function again(reason) {
  const seconds = WAITS[Math.min(failures++, WAITS.length - 1)];
  show("closed", say(reason, { seconds }));
  retry = setTimeout(connect, seconds * 1000);
}

function stop(text) {
  show("stopped", text);
}

function show(state, text) {
  const status = $("play-status");
  status.dataset.state = state;
  status.textContent = text;
  $("play-reconnect").hidden = state === "connected" || state === "connecting";
  $("play-send").disabled = state !== "connected";
}

window.addEventListener("online", () => {
  if (!link.isOpen() && $("play-status").dataset.state === "closed") connect();
});
