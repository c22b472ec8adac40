package simulator

import (
	"bytes"
	"maps"
	"net/http"
	"strconv"
	"time"
)

// exchange is one request and the way to answer it, well or badly.
type exchange struct {
	w     http.ResponseWriter
	r     *http.Request
	entry *entry
}

// send answers as a sound server does. A failed write means that the client
// has left, which is its right.
func (x exchange) send(a answer) {
	x.begin(a, len(a.body))
	_, _ = x.w.Write(a.body)
}

// begin sends status and headers; a negative length is not announced.
func (x exchange) begin(a answer, length int) {
	x.entry.answered(a.status)
	maps.Copy(x.w.Header(), a.header)
	if length >= 0 {
		x.w.Header().Set("Content-Length", strconv.Itoa(length))
	}
	x.w.WriteHeader(a.status)
}

// write sends a piece of a body at once, and gives up where nobody reads.
func (x exchange) write(piece []byte) {
	_, err := x.w.Write(piece)
	if err == nil {
		err = http.NewResponseController(x.w).Flush()
	}
	if err != nil || x.r.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
}

// wait gives up where the client does not wait as long.
func (x exchange) wait(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-x.r.Context().Done():
		panic(http.ErrAbortHandler)
	}
}

func (x exchange) endless(h http.Header) {
	x.begin(answer{http.StatusOK, h, nil}, -1)
	x.write([]byte(`{"data":"`))
	for filler := bytes.Repeat([]byte("a"), 32<<10); ; {
		x.write(filler)
	}
}

func (x exchange) trickle(a answer) {
	x.begin(a, len(a.body))
	for i := range a.body {
		x.write(a.body[i : i+1])
		x.wait(time.Second)
	}
}
