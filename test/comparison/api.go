package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	requestsPath   = "/comparison/requests"
	requestsMetric = "comparison_requests_total"
)

// serve serves a simulated API with as many items as the flag series says: over HTTP,
// and, for programs that take no base URL, as a proxy for HTTPS.
func serve(ctx context.Context, name string) error {
	var (
		answers http.Handler
		total   atomic.Int64
	)
	switch name {
	case "hetzner":
		answers = hetzner(*series)
	case "digitalocean":
		answers = digitalocean(*series)
	case "cloudwatch":
		answers = cloudwatch(*series)
	default:
		return fmt.Errorf("no such API: %s", name)
	}
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		total.Add(1)
		answers.ServeHTTP(w, r)
	})
	secure, err := serveTLS(ctx, counted, flag.Arg(1))
	if err != nil {
		return err
	}
	server := &http.Server{Addr: flag.Arg(0), ReadHeaderTimeout: time.Minute}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodConnect:
			tunnel(w, r, secure)
		case r.URL.Path == requestsPath:
			fmt.Fprintf(w, "%s %d\n", requestsMetric, total.Load())
		default:
			counted.ServeHTTP(w, r)
		}
	})
	return server.ListenAndServe()
}

// serveTLS serves HTTPS on a free address with a new certificate, which it writes to a file.
func serveTLS(ctx context.Context, handler http.Handler, file string) (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "comparison"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: []string{"api.hetzner.cloud", "api.digitalocean.com", "*.statuspage.io"},
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		return "", err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, TLSConfig: &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	}}
	go func() { panic(server.ServeTLS(listener, "", "")) }()
	return listener.Addr().String(), nil
}

// tunnel connects a client of the proxy to address, whatever host it asked for.
func tunnel(w http.ResponseWriter, r *http.Request, address string) {
	server, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", address)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer server.Close()
	w.WriteHeader(http.StatusOK)
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	go func() { _, _ = io.Copy(server, buffered) }()
	_, _ = io.Copy(client, server)
}

// page returns the number of the page that is asked for and the range of its items.
func page(r *http.Request, size, items int) (number, first, last int) {
	if wanted, err := strconv.Atoi(r.FormValue("per_page")); err == nil && wanted > 0 {
		size = wanted
	}
	number, err := strconv.Atoi(r.FormValue("page"))
	if err != nil {
		number = 1
	}
	return number, min(items, (number-1)*size), min(items, number*size)
}
