// The faces that people use most, by QQ's ids. The names are QQ's own.

const LINES = `14 微笑 🙂|1 撇嘴 😕|2 色 😍|4 得意 😎|5 流泪 😢|6 害羞 😊|8 睡 😴|9 大哭 😭|10 尴尬 😅|11 发怒 😡
12 调皮 😜|13 呲牙 😁|0 惊讶 😲|15 难过 🙁|16 酷 🆒|18 抓狂 😫|19 吐 🤮|20 偷笑 🤭|21 可爱 🥰|22 白眼 🙄
23 傲慢 😤|25 困 🥱|26 惊恐 😱|27 流汗 😓|28 憨笑 😄|30 奋斗 💪|32 疑问 ❓|33 嘘 🤫|34 晕 😵|37 骷髅 💀
39 再见 👋|46 猪头 🐷|49 拥抱 🤗|53 蛋糕 🎂|55 炸弹 💣|59 便便 💩|60 咖啡 ☕|61 饭 🍚|63 玫瑰 🌹|64 凋谢 🥀
66 爱心 ❤️|67 心碎 💔|74 太阳 ☀️|75 月亮 🌙|76 赞 👍|77 踩 👎|78 握手 🤝|79 胜利 ✌️|85 飞吻 😘|89 西瓜 🍉
96 冷汗 😰|97 擦汗 😥|98 抠鼻 👃|99 鼓掌 👏|101 坏笑 😏|104 哈欠 🥱|106 委屈 🥺|107 快哭了 😿|109 亲亲 😚|111 可怜 🥺
118 抱拳 🙏|120 拳头 👊|124 OK 👌|171 茶 🍵|173 泪奔 😭|174 无奈 🤷|176 小纠结 😣|178 斜眼笑 😏|179 doge 🐶|182 笑哭 😂
201 点赞 👍|212 托腮 🤔|264 捂脸 🤦|265 辣眼睛 🙈|267 头秃 🧑‍🦲|269 暗中观察 👀|271 吃瓜 🍉|277 汪汪 🐕|281 无眼笑 😆|282 敬礼 🫡
289 睁眼 👁️|307 喵喵 🐱|311 打call 📣|314 仔细分析 🧐|318 崇拜 🤩|319 比心 🫶|320 庆祝 🎉|323 嫌弃 😒|326 生气 😠|424 续标识 ▶️`;

/** `{id, name, sign}` of each face. */
export const FACES = LINES.split(/[|\n]/).map((line) => {
  const [id, name, sign] = line.split(" ");
  return { id, name, sign };
});

const byId = new Map(FACES.map((face) => [face.id, face]));
const byName = new Map(FACES.map((face) => [face.name, face]));

export const faceByName = (name) => byName.get(name);

/** The sign of a face or of a reaction, which may be the number of a Unicode sign; its id where it has none. */
export function faceSign(id) {
  const face = byId.get(String(id));
  if (face) return face.sign;
  const code = Number(id);
  return code > 5000 && code < 0x10ffff ? String.fromCodePoint(code) : `[${id}]`;
}

export const faceName = (id) => byId.get(String(id))?.name ?? String(id);
