package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A sample is the answer to one scrape.
type sample struct {
	err           error
	status        int
	took          time.Duration
	bytes, series int
	text          string
}

func (s sample) String() string {
	if s.err != nil {
		return fmt.Sprintf("%.1f s, %v", s.took.Seconds(), s.err)
	}
	return fmt.Sprintf("%.1f s, status %d, %d series", s.took.Seconds(), s.status, s.series)
}

// scrape requests metrics as Prometheus 2 does.
func scrape(ctx context.Context, url string) (s sample) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return sample{err: err}
	}
	request.Header.Set("Accept", "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1")
	request.Header.Set("Accept-Encoding", "gzip")
	started := time.Now()
	defer func() { s.took = time.Since(started) }()
	response, err := client.Do(request)
	if err != nil {
		return sample{err: err}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	s = sample{err: err, status: response.StatusCode, bytes: len(body), took: time.Since(started)}
	if err == nil && response.Header.Get("Content-Encoding") == "gzip" {
		body, s.err = unzip(body)
	}
	s.text = string(body)
	for line := range strings.Lines(s.text) {
		if line != "\n" && !strings.HasPrefix(line, "#") {
			s.series++
		}
	}
	return s
}

func unzip(body []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

// sum adds all series of a metric without timestamps.
func (s sample) sum(metric string) float64 {
	var sum float64
	for line := range strings.Lines(s.text) {
		if rest, ok := strings.CutPrefix(line, metric); ok && (rest[0] == '{' || rest[0] == ' ') {
			fields := strings.Fields(rest[strings.LastIndex(rest, "}")+1:])
			value, err := strconv.ParseFloat(fields[0], 64)
			if err == nil {
				sum += value
			}
		}
	}
	return sum
}
