# Builds on the platform it runs on, for the platform that is asked for. Whoever publishes
# images should pin the base by the digest that `docker buildx imagetools inspect golang:1.26`
# prints: golang:1.26@sha256:DIGEST.

# The version is that of the file VERSION. Only git knows the revision and its time, and it is not in
# the context: --build-arg REVISION="$(git rev-parse HEAD)" --build-arg COMMIT_TIME="$(git log -1 --format=%ct)".
ARG VERSION=0.1.0
ARG REVISION=
ARG COMMIT_TIME=0

FROM --platform=$BUILDPLATFORM docker.io/library/golang:1.26 AS build
ARG TARGETOS
ARG TARGETARCH
ARG VERSION
ARG REVISION
ARG COMMIT_TIME
WORKDIR /src
COPY . .
# Only the modules that the program needs are downloaded, and both caches stay for the
# next build.
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOFLAGS=-trimpath GOOS=$TARGETOS GOARCH=$TARGETARCH make build licenses VERSION="$VERSION" REVISION="$REVISION" COMMIT_TIME="$COMMIT_TIME"

# Nothing but the program, its licences and the certificates by which it knows the API.
FROM scratch
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title="server_rental_exporter" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.description="Prometheus exporter for the Dedicated Server Rental API" \
      org.opencontainers.image.source="https://github.com/server-rental-exporter/server_rental_exporter" \
      org.opencontainers.image.documentation="https://github.com/server-rental-exporter/server_rental_exporter/blob/main/README.md" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/server_rental_exporter /server_rental_exporter
COPY --from=build /src/LICENSE /src/THIRD_PARTY_LICENSES /
USER 65534:65534
EXPOSE 10170
HEALTHCHECK --interval=30s --timeout=10s --start-period=10s --retries=3 CMD ["/server_rental_exporter", "--healthcheck"]
ENTRYPOINT ["/server_rental_exporter"]
