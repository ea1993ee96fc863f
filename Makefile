# Everything is installed into .venv. The first `make run` or `make test` needs a network, later ones do not.
# Choose another Python with `make PYTHON=/path/to/python run`; pass arguments with `make test ARGS="-k chat"`.

SHELL := /bin/sh
VENV := .venv
PY := $(VENV)/bin/python
PYTHON ?=
ARGS ?=
# Tests at a time: one more than there are cores, because those of servers wait for a part of their time.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# A process of tests that crashes is a failure with its words; replaced by another one the run would wait for ever.
PYTEST := $(PY) -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0
INSTALL := PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 $(PY) -m pip install --quiet --disable-pip-version-check
LOCK = $(VENV)/bin/uv pip compile - --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	--custom-compile-command "make lock" $(ARGS)
# What uv writes behind every package because pyproject.toml says so; a newer Python is to install the packages all the same.
EVERYWHERE := (python_full_version < '3.15'|platform_python_implementation == 'CPython'|sys_platform != 'emscripten')
CATALOGUE := locale/zh_Hans/LC_MESSAGES/django.po

.DEFAULT_GOAL := help
.PHONY: help install drawing run chat doctor upgrade test test-fast lint format bench chaos messages shape pictures lock clean

help:
	@echo "make run       start the server (the first time: install everything it needs)"
	@echo "make install   install only"
	@echo "make drawing   install what draws tables, formulae and code in answers (100 MB)"
	@echo "make chat      talk to the agent in this terminal"
	@echo "make doctor    check the installation and say how to fix what is wrong"
	@echo "make upgrade   go on to the newest version, or back to this one where a step fails"
	@echo "make test      run the test suite"
	@echo "make test-fast run the tests of functions and pages, without a server"
	@echo "make lint      check format, code and types"
	@echo "make format    put the code into its format"
	@echo "make bench     run the load benchmark"
	@echo "make chaos     cause every fault in a server under load, and check the outcome"
	@echo "make messages  collect the texts to translate, and compile the translations"
	@echo "make shape     print the size and the structure of the code in figures"
	@echo "make pictures  take the pictures of the documents, in a browser"
	@echo "make lock      write the lock files again after requirements*.txt changed"
	@echo "make clean     remove .venv and caches; data stays"

install: $(VENV)/.installed

# Whoever has it gets its newer versions with the others'; manage.py install_drawing does the same without make.
DRAWING := -r requirements-drawing.lock
drawing: $(VENV)/.installed
	@echo "Installing what draws into $(VENV) (100 MB) ..."
	@$(INSTALL) --require-hashes $(DRAWING)

run: $(VENV)/.installed
	@$(PY) manage.py runserver $(ARGS)

chat: $(VENV)/.installed
	@$(PY) manage.py chat $(ARGS)

doctor: $(VENV)/.installed
	@$(PY) manage.py doctor $(ARGS)

upgrade: $(VENV)/.installed
	@$(PY) deploy/upgrade.py

test: $(VENV)/.installed-dev
	$(PYTEST) $(ARGS)

test-fast: $(VENV)/.installed-dev
	$(PYTEST) -m "not live and not slow" $(ARGS)

# The types of Django's models are found by loading the settings, which make a data folder.
lint: $(VENV)/.installed-dev
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	FROST_DATA_DIR=.mypy_cache/data $(PY) -m mypy .

format: $(VENV)/.installed-dev
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

# The PostgreSQL and Redis of some scenarios are those of the tests.
bench: $(VENV)/.installed-dev
	$(PY) -m benchmarks $(ARGS)

# Its PostgreSQL and Redis are those of the tests.
chaos: $(VENV)/.installed-dev
	$(PY) -m chaos $(ARGS)

messages: $(VENV)/.installed-dev
	$(PY) -m babel.messages.frontend -q extract -F locale/babel.cfg --no-location --sort-output \
		-k gettext_lazy -k ngettext_lazy:1,2 -k pgettext_lazy:1c,2 -k gettext_noop -o $(VENV)/django.pot .
	$(PY) -m babel.messages.frontend -q update -i $(VENV)/django.pot -o $(CATALOGUE) -l zh_Hans \
		--width=130 --no-fuzzy-matching --ignore-obsolete --ignore-pot-creation-date
	$(PY) -m babel.messages.frontend compile -i $(CATALOGUE) -o $(CATALOGUE:.po=.mo) -l zh_Hans --statistics

# Of a server with an invented story, in the system's Chromium.
pictures: $(VENV)/.installed-dev
	DJANGO_SETTINGS_MODULE=tests.settings $(PY) -m tests.demo.pictures

# What is locked stays as it is where it can; make lock ARGS=--upgrade takes the newest of what the packages bring along.
# The lines -c and -r are left out, because requirements.txt is bound by what was locked before.
lock: $(VENV)/.installed-dev
	@grep -hv '^-[cr] ' requirements.txt requirements-drawing.txt requirements-dev.txt | $(LOCK) --output-file requirements-dev.lock
	@for name in requirements requirements-drawing; do \
		grep -hv '^-[cr] ' $$name.txt | $(LOCK) --constraints requirements-dev.lock --output-file $$name.lock || exit 1; \
	done
	@sed -E -i.bak "s/ and $(EVERYWHERE)//g; s/ ; $(EVERYWHERE) and / ; /; s/ ; $(EVERYWHERE)//" *.lock
	@{ echo "# Written by make lock: the versions of requirements-dev.lock, for a plain pip install -r requirements.txt."; \
		sed -n 's/ *\\$$//; /==/p' requirements-dev.lock; } > constraints.txt
	@rm -f *.lock.bak

shape: $(PY)
	@$(PY) .ci/shape.py $(ARGS)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis tests/mcp_servers/node_modules \
		tests/model_servers/node_modules tests/chat_templates/node_modules tests/browser/node_modules

# --- Installing -----------------------------------------------------------------

# pip would compile every module of every package, and nothing ever loads two of three: 70 MB.
$(VENV)/.installed: $(PY) requirements.lock requirements-drawing.lock
	@echo "Installing what the server needs into $(VENV) (once, about a minute) ..."
	@$(INSTALL) --no-compile --require-hashes -r requirements.lock $(if $(wildcard $(VENV)/lib/*/site-packages/typst),$(DRAWING))
	@folder=$$(mktemp -d); PYTHONDONTWRITEBYTECODE= FROST_DATA_DIR=$$folder $(PY) -m frostproject.start.bytecode; rm -rf "$$folder"
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.lock
	@echo "Installing what the tests need into $(VENV) (once) ..."
	@$(INSTALL) --require-hashes -r requirements-dev.lock
	@touch $@

# A name on the PATH may be a shim of a Python that is not there, or too old: each is tried. Where Python comes
# without ensurepip (Debian without python3-venv), a pip outside the new environment can still put one into it.
$(PY):
	@for python in $(or $(PYTHON),python3.11 python3.12 python3.13 python3.14 python3 python); do \
		"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
		rm -rf $(VENV); \
		"$$python" -m venv $(VENV) >/dev/null 2>&1 && { $(PY) -m pip uninstall -qq -y setuptools; exit 0; }; \
		rm -rf $(VENV); \
		"$$python" -m venv --without-pip $(VENV) >/dev/null 2>&1 \
			&& PIP_USER=0 "$$python" -m pip --python $(PY) install --quiet pip >/dev/null 2>&1 && exit 0; \
		rm -rf $(VENV); \
		echo "$$python cannot make a virtual environment. On Debian and Ubuntu: apt install python3-venv" >&2; \
		broken=yes; \
	done; \
	test -n "$$broken" || echo "FrostAgent needs Python 3.11 or newer; none was found. Name one with: make PYTHON=/path/to/python run" >&2; \
	exit 1
