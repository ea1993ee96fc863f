"""The weather of a city: the row's mock value, or live from Open-Meteo (https://open-meteo.com, no
key)."""

from tools.contract import ToolFailed
from tools.functions.function_tool import NonBlank, tool
from tools.functions.samples.source import expect_fields, fetch_json
from tools.registry.catalogue import DefaultConfig

GEOCODING_URL = "https://geocoding-api.open-meteo.com/v1/search"
FORECAST_URL = "https://api.open-meteo.com/v1/forecast"
_NOW = "temperature_2m,relative_humidity_2m,weather_code,wind_speed_10m"
_SKIES = {
    "晴朗": (0, 1),
    "多云": (2,),
    "阴": (3,),
    "有雾": (45, 48),
    "毛毛雨": (51, 53, 55),
    "冻雨": (56, 57, 66, 67),
    "小雨": (61,),
    "中雨": (63,),
    "大雨": (65,),
    "小雪": (71, 77),
    "中雪": (73,),
    "大雪": (75,),
    "阵雨": (80, 81, 82),
    "阵雪": (85, 86),
    "雷暴": (95, 96, 99),
}
"""WMO weather interpretation codes, as Open-Meteo uses them."""


@tool(default_config=DefaultConfig(mock_enabled=True, mock_value="{city} 的天气是晴朗，温度 25°C"))
def get_weather(city: NonBlank) -> str:
    """查询一个城市当前的天气。

    Args:
        city: 城市名，例如：北京
    """
    with expect_fields():
        found = fetch_json(GEOCODING_URL, name=city.strip(), count=1, language="zh").get("results")
        if not found:
            raise ToolFailed(f"找不到城市: {city}，请核对名称")
        city_found = found[0]
        now = fetch_json(
            FORECAST_URL,
            latitude=city_found["latitude"],
            longitude=city_found["longitude"],
            current=_NOW,
        )["current"]
        sky = next(
            (words for words, codes in _SKIES.items() if now["weather_code"] in codes), "未知"
        )
        where = "，".join(
            dict.fromkeys(
                filter(
                    None, (city_found["name"], city_found.get("admin1"), city_found.get("country"))
                )
            )
        )
        return (
            f"{where} 的天气是{sky}，温度 {now['temperature_2m']}°C，"
            f"湿度 {now['relative_humidity_2m']}%，风速 {now['wind_speed_10m']} km/h"
        )
