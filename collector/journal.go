package collector

import (
	"errors"
	"sync"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
)

// journal logs what changes in a collector, not what stays as it is: each cause
// of failure once until it works again, items left out once until there are none.
type journal struct {
	logger log.Logger

	mu      sync.Mutex
	causes  map[string]bool // logged since the last success
	partial bool
}

// classed is an error that says which errors are the same to an operator.
type classed interface{ Class() string }

// note takes in the outcome of a fetch.
func (j *journal) note(invalid faults, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.failed(err)
		return
	}
	if len(j.causes) > 0 {
		level.Info(j.logger).Log("msg", "collector works again")
		j.causes = nil
	}
	if (invalid.count > 0) == j.partial {
		return
	}
	j.partial = !j.partial
	if j.partial {
		level.Warn(j.logger).Log("msg", "items left out", "items", invalid.count, "first", invalid.first)
		return
	}
	level.Info(j.logger).Log("msg", "all items understood again")
}

func (j *journal) failed(err error) {
	cause := ""
	var c classed
	if errors.As(err, &c) {
		cause = c.Class()
	}
	if j.causes[cause] {
		level.Debug(j.logger).Log("msg", "collector still fails", "err", err)
		return
	}
	if j.causes == nil {
		j.causes = map[string]bool{}
	}
	j.causes[cause] = true
	level.Error(j.logger).Log("msg", "collector fails", "err", err)
}
