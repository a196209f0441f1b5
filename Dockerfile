# The server by itself. Built as `docker build -t steersman .`; run with a volume, and told by what name it is reached:
#   docker run -p 6443:6443 -v steersman:/data steersman
# The first start makes the CA, certificates, and a kubeconfig of an administrator, all in the volume.
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src/ src/
RUN python -m venv --without-pip /opt/steersman
RUN pip --python /opt/steersman/bin/python install --no-cache-dir --only-binary=:all: .

FROM python:3.13-slim
COPY --from=build /opt/steersman /opt/steersman
RUN install --directory --owner=65532 --group=65532 --mode=0700 /data
USER 65532:65532
VOLUME /data
EXPOSE 6443
ENTRYPOINT ["/opt/steersman/bin/steersman"]
CMD ["serve", "--bind-address=0.0.0.0", "--store=sqlite:////data/cluster.db", "--kubeconfig=/data/admin.kubeconfig"]
