package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/go-kit/log"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/rentalapi"
)

// source is one collector of one scope.
type source struct {
	*refresh.Source[collector.Snapshot]
	resource *collector.Resource
	scope    *scope
	fetch    func(context.Context, rentalapi.Getter) (collector.Snapshot, error)
	runner   *Runner
	logger   stateLogger
	stop     context.CancelFunc

	tried atomic.Bool // a request, or the first one of a long history, has ended
	// last is the last good response without metrics; kept when its data expires.
	last atomic.Pointer[collector.Snapshot]
	// incomplete is whether the newest response that could be read was incomplete.
	incomplete atomic.Bool
}

func (r *Runner) newSource(sc *scope, res *collector.Resource, settings refresh.Settings) *source {
	logger := log.With(r.options.Logger, "collector", res.Name)
	if sc.account != "" {
		logger = log.With(logger, "account", sc.account)
	}
	src := &source{resource: res, scope: sc, fetch: res.NewFetcher(sc.account), runner: r, logger: stateLogger{logger: logger}, stop: func() {}}
	r.API.InitErrorCounters(res.Path)
	src.Source = refresh.New(settings, src.get, src.ended)
	return src
}

// get fetches the resource once, and records the outcome.
func (src *source) get(ctx context.Context) (collector.Snapshot, refresh.Phase, error) {
	began := time.Now()
	snap, err := src.fetch(ctx, src)
	if ctx.Err() != nil {
		return collector.Snapshot{}, refresh.Phase{}, ctx.Err()
	}
	shown, _, ok := src.Value()
	older := err == nil && ok && snap.IsOlder(shown)
	if err != nil {
		err = src.classify(err)
		src.logger.recordFailure(err)
		return collector.Snapshot{}, refresh.Phase{}, err
	}
	age := snap.Age
	if older {
		snap, err = shown, refresh.ErrUnchanged
	} else if snap.Commit != nil {
		snap.Commit()
	}
	if src.scope.account == "" && snap.Data != (collector.Data{}) {
		src.runner.stepWatches() // forgets data that has expired or was removed before there is new one
	}
	last, before := snap, src.providerID()
	last.Metrics, last.Age = nil, age
	src.last.Store(&last)
	src.incomplete.Store(false)
	src.runner.identify(src, before)
	src.logger.recordSuccess(snap.Invalid)
	return snap, src.phase(snap.Age, began), err
}

// providerID returns the provider's id of the account; empty if the collector does not
// tell it.
func (src *source) providerID() string {
	if last := src.last.Load(); last != nil && last.Data.Account != nil {
		return last.Data.Account.ID
	}
	return ""
}

// Get implements rentalapi.Getter. A source that asks for a further page has been tried:
// a long history takes minutes.
func (src *source) Get(ctx context.Context, path string, query url.Values, read func(io.Reader) error) (rentalapi.Response, error) {
	if page := query.Get("page"); page != "" && page != "1" {
		src.tried.Store(true)
	}
	defer src.runner.groups.state.Changed()
	return src.scope.api.Get(ctx, path, query, read)
}

// classify counts an error that the getter did not return, and adds what an operator can
// do about an endpoint that the API does not have.
func (src *source) classify(err error) error {
	var failure *rentalapi.Error
	if !errors.As(err, &failure) {
		err = src.scope.api.Reject(src.resource.Path, err)
	}
	if errors.As(err, &failure) && failure.Reason == rentalapi.Incomplete {
		src.incomplete.Store(true)
	}
	if errors.As(err, &failure) && failure.Code == http.StatusNotFound {
		return fmt.Errorf("%w; disable the collector if the API does not have this endpoint", err)
	}
	return err
}

// phase returns when newer data comes to exist: in the public scope when the provider's
// cache turns over; all collectors of an account share a grid, so that what belongs
// together is fetched within a second.
func (src *source) phase(age collector.Age, began time.Time) refresh.Phase {
	switch cacheTime := src.resource.MinInterval; {
	case src.scope.account != "":
		interval := src.State().Interval
		periods := began.Sub(src.scope.origin)/interval + 1
		return refresh.Phase{Next: src.scope.origin.Add(periods * interval), Period: interval}
	case age.ProducedBy.IsZero() || cacheTime == 0:
		return refresh.Phase{}
	default:
		return refresh.Phase{Next: age.ProducedBy.Add(cacheTime), Period: cacheTime}
	}
}
