// Segments as a message of CQ codes, escaped as OneBot 11 says.

const escapeText = (text) => text.replace(/&/g, "&amp;").replace(/\[/g, "&#91;").replace(/\]/g, "&#93;");
const escapeValue = (text) => escapeText(text).replace(/,/g, "&#44;");

export function toCq(segments) {
  return segments
    .map(({ type, data }) => {
      if (type === "text") return escapeText(data.text);
      const values = Object.entries(data).map(([name, value]) => `,${name}=${escapeValue(String(value))}`);
      return `[CQ:${type}${values.join("")}]`;
    })
    .join("");
}
