# Builds on the platform it runs on, for the platform that is asked for.
FROM --platform=$BUILDPLATFORM docker.io/library/golang:1.26 AS build
ARG TARGETOS
ARG TARGETARCH
ARG REVISION=
ARG BRANCH=
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X github.com/prometheus/common/version.Version=$(cat VERSION) -X github.com/prometheus/common/version.Revision=$REVISION -X github.com/prometheus/common/version.Branch=$BRANCH" \
    -o /server_rental_exporter .

# Nothing but the program and the certificates by which it knows the API.
FROM scratch
LABEL org.opencontainers.image.title="server_rental_exporter" \
      org.opencontainers.image.description="Prometheus exporter for the Dedicated Server Rental API" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /server_rental_exporter /server_rental_exporter
USER 65534:65534
EXPOSE 10170
ENTRYPOINT ["/server_rental_exporter"]
