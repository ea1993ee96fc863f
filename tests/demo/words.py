"""What is said in the story that the pictures of the README show, in both languages. All of it is
invented."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Words:
    language: str
    """Of the installation."""
    persona: str
    prompt: str
    people: tuple[str, str, str]
    groups: tuple[str, str]
    chatter: tuple[str, ...]
    """Said in the first group, to nobody."""
    weather: tuple[str, str, str]
    """The question, the city, the answer."""
    picture: tuple[str, str, str]
    """A question about a picture, what is in it, the answer."""
    table: tuple[str, str, str, str]
    """A wish that takes an owner's word, its place, what is said at once, what is said when it is
    done."""
    table_tool: str
    approve: str
    unpaid: str
    """A question that fails."""
    private: tuple[str, str]
    away: tuple[str, str]
    """An exchange with the account that is not connected any more."""
    played: tuple[str, str]
    """A question in the playground that calls the tool of the weather, and its answer."""
    weather_mocks: tuple[str, str]
    """What the tool of the weather answered first, and answers later."""
    budget: str


CHINESE = Words(
    language="zh-hans",
    persona="小霜",
    prompt="你是小霜，在群里说话简短、自然，像朋友一样。不知道的就说不知道。",
    people=("木木", "小雨", "老陈"),
    groups=("周末骑行群", "楼下猫咪互助会"),
    chatter=("周日早上七点老地方集合，别迟到", "收到，这次我带打气筒", "上次那家面馆还开着吗"),
    weather=(
        "周日杭州天气怎么样？",
        "杭州",
        "周日杭州晴，最高 25 °C，适合骑车。早上有点凉，带件外套。",
    ),
    picture=(
        "昨天绕湖拍的，能当群头像吗？",
        "湖面上的落日，天空从蓝到橙。",
        "可以，湖面和落日居中，缩小了也认得出来。",
    ),
    table=(
        "帮我们订周日中午十二点、六个人的位子",
        "湖边小馆",
        "订位要群主点头，我已经去问了，同意后马上订。",
        "订好了：湖边小馆，周日 12:00，六位。",
    ),
    table_tool="在餐馆订位子。",
    approve="批准",
    unpaid="三花今天还没来，要不要去找找？",
    private=("明天要交周报，帮我想个开头", "可以这样开头：本周完成了三件事，最要紧的一件是……"),
    away=("在吗", "在的，请说。"),
    played=("北京天气", "北京今天晴，25 °C，出门不用带伞。"),
    weather_mocks=("{city} 多云，22 °C", "{city} 晴，25 °C"),
    budget="每月",
)
ENGLISH = Words(
    language="en",
    persona="Frosty",
    prompt="You are Frosty. In groups you speak briefly and naturally, as a friend would.",
    people=("Lin", "Rain", "Chen"),
    groups=("Sunday ride club", "Courtyard cats"),
    chatter=(
        "Sunday at seven, the usual place. Don't be late",
        "Got it, I'll bring the pump this time",
        "Is that noodle place still open?",
    ),
    weather=(
        "What will the weather be like on Sunday in Hangzhou?",
        "Hangzhou",
        "Sunny on Sunday, up to 25 °C: a good day to ride. Bring a jacket for the morning.",
    ),
    picture=(
        "Took this at the lake yesterday. Good as the group's picture?",
        "A sunset over a lake, the sky blue to orange.",
        "Yes. Lake and sunset are in the middle, so it works when it is small, too.",
    ),
    table=(
        "Book us a table for six on Sunday at noon",
        "Lakeside Kitchen",
        "A booking needs the owner's word. I have asked, and book as soon as I may.",
        "Booked: Lakeside Kitchen, Sunday 12:00, six people.",
    ),
    table_tool="Books a table in a restaurant.",
    approve="approve",
    unpaid="The calico has not come today. Should we look for her?",
    private=(
        "My weekly report is due tomorrow. How do I begin?",
        "For example: three things got done this week, and the most important one is …",
    ),
    away=("Are you there?", "I am. What is it?"),
    played=("What is the weather in Beijing?", "Sunny in Beijing, 25 °C. No umbrella needed."),
    weather_mocks=("{city}: cloudy, 22 °C", "{city}: sunny, 25 °C"),
    budget="Month",
)
