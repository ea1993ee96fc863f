// Segments as QQ shows them.

import { el, say, visible } from "./dom.js";
import { faceName, faceSign } from "./faces.js";
import { ACCOUNT, findMessage, GONE, nameOf, state } from "./store.js";

const PICTURES = { iVBOR: "image/png", "/9j/": "image/jpeg", R0lGO: "image/gif", UklGR: "image/webp", Qk: "image/bmp" };
const SOUNDS = { UklGR: "audio/wav", SUQz: "audio/mpeg", "//": "audio/mpeg", T2dnUw: "audio/ogg", GkXfo: "audio/webm", ZkxhQ: "audio/flac", AAAA: "audio/mp4" };
const VIDEOS = { AAAA: "video/mp4", GkXfo: "video/webm" };
const BASE64 = "base64://";

/** The words of a message, for quotes and lists. */
export function plainWords(segments) {
  const words = segments.map(({ type, data }) => {
    if (type === "text") return data.text;
    if (type === "at") return `@${data.qq === "all" ? say("everyone") : nameOf(data.qq)} `;
    if (type === "face") return faceSign(data.id);
    if (type === "reply") return "";
    return `[${mediaWord(type, data)}]`;
  });
  return visible(words.join("").trim());
}

function mediaWord(type, data) {
  const names = { image: say("image"), record: say("voice"), video: say("video"), forward: say("forwardOf"), node: say("forwardOf") };
  return type === "file" ? `${say("file")}: ${data.name ?? ""}` : (names[type] ?? type);
}

/** The elements of a message. `jump` shows another message. */
export const drawSegments = (segments, jump) => segments.map((segment) => drawSegment(segment, jump));

function drawSegment({ type, data }, jump) {
  switch (type) {
    case "text":
      return el("span", { class: "play-text" }, data.text ?? "");
    case "at":
      return el("span", { class: `play-at${String(data.qq) === ACCOUNT ? " play-at-bot" : ""}` }, `@${data.qq === "all" ? say("everyone") : nameOf(data.qq)}`);
    case "face":
      return el("span", { class: "play-face", role: "img", "aria-label": faceName(data.id), title: faceName(data.id) }, faceSign(data.id));
    case "reply":
      return drawQuote(String(data.id ?? ""), jump);
    case "image":
      return drawMedia(data, PICTURES, "image", (src) => el("img", { src, alt: data.summary || say("image"), class: "play-image" }));
    case "record":
      return drawMedia(data, SOUNDS, "voice", (src) => el("audio", { src, controls: true, preload: "metadata", "aria-label": say("voice") }));
    case "video":
      return drawMedia(data, VIDEOS, "video", (src) => el("video", { src, controls: true, class: "play-image", "aria-label": say("video") }));
    case "file":
      return drawMedia(data, {}, "file", null);
    case "forward":
      return drawForward(state.forwards[data.id] ?? [], jump);
    case "music":
      return el("span", { class: "play-card" }, `♪ ${data.title ?? `${data.type} ${data.id ?? ""}`}`);
    case "json":
      return el("span", { class: "play-card" }, cardTitle(data.data));
    default:
      return el("span", { class: "play-card" }, `[${type}]`);
  }
}

function drawQuote(id, jump) {
  const quoted = findMessage(id);
  const words = quoted?.segments ? `${nameOf(quoted.from)}: ${quoted.recalled ? "…" : plainWords(quoted.segments).slice(0, 80)}` : say("lostQuote");
  return el("button", { type: "button", class: "play-quote", "data-quotes": id, onclick: () => jump(id), disabled: !quoted }, words);
}

function drawMedia(data, types, word, make) {
  const file = String(data.file ?? "");
  if (file === GONE) return el("span", { class: "play-card" }, `[${say(word)}] ${say("gone")}`);
  if (!file.startsWith(BASE64)) return el("span", { class: "play-card" }, `[${say(word)}] ${file.slice(0, 200) && say("elsewhere", { address: file.slice(0, 200) })}`);
  const content = file.slice(BASE64.length);
  const found = Object.keys(types).find((head) => content.startsWith(head));
  if (found && make) return make(`data:${types[found]};base64,${content}`);
  const name = data.name || `${word}.bin`;
  return el("a", { class: "play-card", href: `data:application/octet-stream;base64,${content}`, download: name }, say("save", { name }));
}

function drawForward(nodes, jump) {
  const inside = nodes.map((node) => el("li", {}, el("strong", {}, node.name || nameOf(node.from)), " ", ...drawSegments(node.segments, jump)));
  return el("details", { class: "play-forward" }, el("summary", {}, `${say("forwardOf")} · ${say("messages", { count: nodes.length })}`), el("ol", {}, inside));
}

function cardTitle(text) {
  try {
    const card = JSON.parse(text);
    return card.prompt ?? card.title ?? "[json]";
  } catch {
    return "[json]";
  }
}
