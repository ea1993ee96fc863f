"""How words are cut for the search, in both directions."""

from hypothesis import given, strategies as st

from tools.text.search_terms import (
    INDEX_LIMIT,
    SEARCH_LIMIT,
    index_terms,
    key_term,
    normalize_text,
    search_terms,
)


def test_chinese_becomes_characters_and_pairs_and_is_looked_for_by_pairs():
    assert index_terms("喜欢猫") == ["喜", "欢", "猫", "喜欢", "欢猫"]
    assert search_terms("喜欢猫") == ["喜欢", "欢猫"]


def test_a_single_character_is_looked_for_as_it_is():
    assert search_terms("猫") == ["猫"]


def test_words_are_found_in_any_case_and_width():
    assert index_terms("Ｐｙｔｈｏｎ 3, C++") == ["python", "3", "c"]
    assert normalize_text("  Ａ\n b ") == "a b"


def test_mixed_scripts_are_cut_apart():
    assert search_terms("用Python写诗") == ["用", "python", "写诗"]


def test_common_words_are_not_looked_for_unless_there_is_nothing_else():
    assert search_terms("what is the password") == ["password"]
    assert search_terms("你是谁") == ["你是", "是谁"]


def test_of_a_long_text_its_two_ends_are_looked_for():
    long = " ".join(f"word{number}" for number in range(5_000))
    terms = search_terms(long)
    assert len(terms) == SEARCH_LIMIT
    assert (terms[0], terms[-1]) == ("word0", "word4999")


@given(st.text(max_size=200))
def test_whatever_is_looked_for_in_a_text_is_indexed_for_it(text: str):
    assert set(search_terms(text)) <= set(index_terms(text))
    assert not any(sign in term for term in index_terms(text) for sign in " '\"\\\0")


def test_a_note_has_a_bounded_number_of_terms():
    assert len(index_terms(" ".join(map(str, range(10_000))))) == INDEX_LIMIT


def test_a_key_is_one_word_and_differs_with_its_parts():
    assert key_term("a", "b").isalnum()
    assert len({key_term("a", "b"), key_term("ab"), key_term("b", "a")}) == 3
