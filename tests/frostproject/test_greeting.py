"""What a start prints: where to go with a browser."""

from frostproject.start.bootstrap import print_greeting


def test_the_address_of_the_first_steps_is_printed(capsys):
    print_greeting(("127.0.0.1", 1234))
    assert "http://127.0.0.1:1234/admin/start/" in capsys.readouterr().out.split()


def test_without_a_port_no_address_is_made_up(capsys):
    print_greeting(None)
    assert "/admin/start/" not in capsys.readouterr().out
