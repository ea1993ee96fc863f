# The server in a container: docs/docker.md. For amd64 and arm64.
ARG FROST_BASE=python:3.11.14-slim-bookworm

FROM ${FROST_BASE} AS build
# Where packages come from, a certificate authority to trust for it, and anything at DRAWING for what draws tables and formulae.
ARG PIP_INDEX_URL
ARG PIP_CERT
ARG FROST_DRAWING
RUN python3 -m venv /opt/venv
COPY requirements.lock requirements-drawing.lock /tmp/
# Only modules that the program may load are compiled, below. Of what packages bring for developers and for other
# languages nothing is kept; pip and setuptools go last.
RUN /opt/venv/bin/python -m pip install --no-cache-dir --no-compile --disable-pip-version-check --quiet \
		--only-binary :all: --require-hashes -r /tmp/requirements.lock ${FROST_DRAWING:+-r /tmp/requirements-drawing.lock} \
	&& find /opt/venv -type d \( -name tests -o -path '*/twisted/*/test' -o -path '*/twisted/test' \) -prune -exec rm -rf {} + \
	&& find /opt/venv -type f \( -name '*.py[xi]' -o -name '*.px[di]' -o -name '*.h' -o -name '*.po' \) -delete \
	&& rm -rf /opt/venv/lib/python3*/site-packages/autobahn/_flatc \
	&& find /opt/venv/lib/python3*/site-packages/django -path '*/locale/*' -prune ! -name 'zh*' ! -name 'en*' ! -name '*.py' -exec rm -rf {} + \
	&& /opt/venv/bin/python -m pip uninstall --quiet --yes setuptools pip
WORKDIR /app
COPY . .
# Also what Django finds by itself, and what the base has of Python and keeps no compiled copy of.
RUN export PYTHONPYCACHEPREFIX=/opt/compiled FROST_DATA_DIR=/tmp/data \
	&& /opt/venv/bin/python -m frostproject.start.bytecode \
	&& /opt/venv/bin/python -m compileall -q /opt/venv/lib/python3*/site-packages/django/contrib \
		/opt/venv/lib/python3*/site-packages/django/templatetags /opt/venv/lib/python3*/site-packages/django_otp*

FROM ${FROST_BASE}
LABEL org.opencontainers.image.title="FrostAgent for Django" org.opencontainers.image.licenses="MIT"
# The folders of volumes: a new volume takes owner and mode from them.
RUN for folder in /data /data/plugins /client /napcat/config /napcat/templates; do \
		mkdir -p "$folder" && chown 10001:10001 "$folder" && chmod 700 "$folder"; \
	done
COPY --from=build /opt/venv /opt/venv
COPY --from=build /opt/compiled /opt/compiled
COPY --from=build /app /app
WORKDIR /app
ENV PATH=/opt/venv/bin:$PATH HOME=/tmp PYTHONPYCACHEPREFIX=/opt/compiled PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 \
	FROST_DATA_DIR=/data PLUGINS_DIR=/data/plugins
USER 10001:10001
VOLUME /data
EXPOSE 1234
HEALTHCHECK --interval=15s --timeout=10s --start-period=120s --retries=4 CMD ["python", "-IS", "deploy/ready.py", "1234"]
CMD ["daphne", "-b", "0.0.0.0", "-p", "1234", "frostproject.asgi:application"]
