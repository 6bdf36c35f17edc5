/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/tsdb"
)

// recording has the samples of a hub, as a Prometheus stores them.
type recording struct {
	db     *tsdb.DB
	dir    string
	period time.Duration
	// first and last are the times of the samples.
	first, last time.Time
}

func newRecording(period time.Duration) (*recording, error) {
	dir, err := os.MkdirTemp("", "synchub-pictures-")
	if err != nil {
		return nil, fmt.Errorf("create a directory for samples: %w", err)
	}
	db, err := tsdb.Open(dir, nil, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a database for samples: %w", err), os.RemoveAll(dir))
	}
	return &recording{db: db, dir: dir, period: period}, nil
}

func (r *recording) close() error { return errors.Join(r.db.Close(), os.RemoveAll(r.dir)) }

// record reads the metrics now, and until the duration has passed.
func (r *recording) record(ctx context.Context, url string, duration time.Duration) error {
	ticker := time.NewTicker(r.period)
	defer ticker.Stop()
	end := time.NewTimer(duration + r.period/2)
	defer end.Stop()
	for at := time.Now(); ; {
		text, err := read(ctx, url)
		if err != nil {
			return err
		}
		if err := r.add(ctx, text, at); err != nil {
			return fmt.Errorf("keep the samples of %s: %w", url, err)
		}
		select {
		case at = <-ticker.C:
		case <-end.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func read(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", url, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("get %s: the hub answers %s", url, response.Status)
	}
	return io.ReadAll(response.Body)
}

// add keeps the samples of a text of metrics, with the labels that a Prometheus adds.
func (r *recording) add(ctx context.Context, text []byte, at time.Time) error {
	appender := r.db.Appender(ctx)
	parser := textparse.NewPromParser(text, labels.NewSymbolTable(), false)
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(err, appender.Rollback())
		}
		if entry != textparse.EntrySeries {
			continue
		}
		_, _, value := parser.Series()
		var own labels.Labels
		parser.Labels(&own)
		all := labels.NewBuilder(own).Set("job", "synchub").Set("instance", "synchub-0").Labels()
		if _, err := appender.Append(0, all, at.UnixMilli(), value); err != nil {
			return errors.Join(err, appender.Rollback())
		}
	}
	if r.first.IsZero() {
		r.first = at
	}
	r.last = at
	return appender.Commit()
}
