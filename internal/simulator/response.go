package simulator

import (
	"bytes"
	"maps"
	"net/http"
	"strconv"
	"time"
)

// responder sends the answer to one request, correct or faulty.
type responder struct {
	w http.ResponseWriter
	r *http.Request
}

// send sends a complete answer. A failed write means that the client closed the
// connection, which is not an error of the server.
func (x responder) send(a answer) {
	x.begin(a, len(a.body))
	_, _ = x.w.Write(a.body)
}

// begin sends status and headers; without Content-Length if the length is negative.
func (x responder) begin(a answer, length int) {
	maps.Copy(x.w.Header(), a.header)
	if length >= 0 {
		x.w.Header().Set("Content-Length", strconv.Itoa(length))
	}
	x.w.WriteHeader(a.status)
}

// write sends a part of a body immediately. It aborts if the client is gone.
func (x responder) write(part []byte) {
	_, err := x.w.Write(part)
	if err == nil {
		err = http.NewResponseController(x.w).Flush()
	}
	if err != nil || x.r.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
}

// wait sleeps. It aborts if the client is gone.
func (x responder) wait(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-x.r.Context().Done():
		panic(http.ErrAbortHandler)
	}
}

// endless sends a JSON string without an end.
func (x responder) endless(h http.Header) {
	x.begin(answer{http.StatusOK, h, nil}, -1)
	x.write([]byte(`{"data":"`))
	for filler := bytes.Repeat([]byte("a"), 32<<10); ; {
		x.write(filler)
	}
}

// trickle sends one byte of the body per second.
func (x responder) trickle(a answer) {
	x.begin(a, len(a.body))
	for i := range a.body {
		x.write(a.body[i : i+1])
		x.wait(time.Second)
	}
}
