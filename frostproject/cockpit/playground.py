"""The page of the playground, which plays voice and videos that came over its socket."""

from frostproject.web.browser_policy import allow_data_media
from onebot.playground.pages import playground_page

page = allow_data_media(playground_page)
