package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/go-kit/log"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/rentalapi"
)

// source is one collector of one scope.
type source struct {
	*refresh.Source[collector.Snapshot]
	resource *collector.Resource
	scope    *scope
	fetch    collector.Fetch
	runner   *Runner
	logger   stateLogger
	stop     context.CancelFunc
	bytes    int // of the last snapshot, as text

	tried atomic.Bool                  // a request, or the first one of a long history, has ended
	last  atomic.Pointer[goodResponse] // kept when its data expires
	// incomplete is whether the newest response that could be read was incomplete.
	incomplete atomic.Bool
}

// goodResponse is what is reported about the last good response.
type goodResponse struct {
	invalid rentalapi.Invalid
	age     collector.Age
}

func (r *Runner) newSource(sc *scope, res *collector.Resource, settings refresh.Settings) *source {
	logger := log.With(r.options.Logger, "collector", res.Name)
	if sc.account != "" {
		logger = log.With(logger, "account", sc.account)
	}
	src := &source{resource: res, scope: sc, fetch: res.NewFetch(), runner: r, logger: stateLogger{logger: logger}, stop: func() {}}
	r.Client.InitErrorCounters(res.Endpoint)
	o := refresh.Options[collector.Snapshot]{
		OnChange: func(updated bool) {
			if updated {
				r.changed(src)
			}
			src.tried.Store(true) // after the groups were marked as changed
			r.groups.health.Changed()
		},
		PhaseOf: src.phase,
	}
	if r.options.Rand != nil {
		o.Rand = rand.New(rand.NewPCG(r.options.Rand.Uint64(), r.options.Rand.Uint64()))
	}
	src.Source = refresh.New(settings, src.get, o)
	return src
}

// get fetches the resource once, and records the outcome.
func (src *source) get(ctx context.Context) (collector.Snapshot, error) {
	b := src.scope.builder()
	if !src.resource.Long {
		b.MaxBytes = metric.MaxBytesShort
	}
	snap, err := src.fetch(ctx, src, b)
	if ctx.Err() != nil {
		return collector.Snapshot{}, ctx.Err()
	}
	if err == nil && !src.runner.memory.exchange(&src.bytes, b.Bytes()) {
		err = fmt.Errorf("%w: all metrics together would need more than a %dth of GOMEMLIMIT", rentalapi.ErrTooLarge, memoryFactor)
	}
	err = src.classify(err)
	if shown, _, ok := src.Value(); ok && err == nil && snap.IsOlder(shown) {
		src.last.Store(&goodResponse{shown.Invalid, snap.Age})
		src.incomplete.Store(false)
		src.logger.record(shown.Invalid, nil)
		return collector.Snapshot{}, refresh.ErrUnchanged
	}
	var failure *rentalapi.Error
	switch {
	case err == nil:
		if snap.Commit != nil {
			snap.Commit()
		}
		src.last.Store(&goodResponse{snap.Invalid, snap.Age})
		src.incomplete.Store(false)
		src.runner.identities.record(src.scope.account, snap.Facts)
	case errors.As(err, &failure) && failure.Reason == rentalapi.Incomplete:
		src.incomplete.Store(true)
	}
	src.logger.record(snap.Invalid, err)
	return snap, err
}

// Get implements rentalapi.Getter. A source that asks for a further page has been tried:
// a long history takes minutes.
func (src *source) Get(ctx context.Context, p rentalapi.Priority, endpoint string, query url.Values, read func(io.Reader) error) (rentalapi.Response, error) {
	if page := query.Get("page"); page != "" && page != "1" && !src.tried.Swap(true) {
		src.runner.groups.health.Changed()
	}
	defer src.runner.groups.accounts.Changed()
	return src.scope.api.Get(ctx, p, endpoint, query, read)
}

// classify counts an error that the getter did not return, and adds what an operator can
// do about an endpoint that the API does not have.
func (src *source) classify(err error) error {
	var failure *rentalapi.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &failure):
		return src.scope.api.Reject(src.resource.Endpoint, err)
	case failure.Code == http.StatusNotFound:
		return fmt.Errorf("%w; disable the collector if the API does not have this endpoint", err)
	}
	return err
}

// phase returns when newer data comes to exist: in the public scope when the provider's
// cache turns over; all collectors of an account share a grid, so that what belongs
// together is fetched within a second.
func (src *source) phase(snap collector.Snapshot, began time.Time) refresh.Phase {
	switch cacheTime := src.resource.MinInterval; {
	case src.scope.account != "":
		interval := src.State().Interval
		periods := began.Sub(src.scope.origin)/interval + 1
		return refresh.Phase{Next: src.scope.origin.Add(periods * interval), Period: interval}
	case !snap.Age.Known || cacheTime == 0:
		return refresh.Phase{}
	default:
		return refresh.Phase{Next: snap.Age.ProducedBy.Add(cacheTime), Period: cacheTime}
	}
}
