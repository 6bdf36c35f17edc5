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

package queue

import (
	"context"
	"errors"
	"fmt"
	gosync "sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A failure that is reported elsewhere is retried like any other, and only the other one is logged.
func TestReportedErrorsAreNotLogged(t *testing.T) {
	var attempts [2]int
	for i, failure := range []error{fmt.Errorf("cannot place it: %w", &ReportedError{Err: errors.New("refused")}), errors.New("no connection")} {
		synctest.Test(t, func(t *testing.T) {
			lines := &logged{}
			queue := newTestQueue(clock.RealClock{}, func(context.Context, string) (reconcile.Result, error) {
				attempts[i]++
				return reconcile.Result{}, failure
			})
			queue.options.Log = func(string) logr.Logger { return lines.logger() }
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- queue.Run(ctx) }()
			queue.Add("key")
			time.Sleep(time.Hour)
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if want := i * attempts[i]; lines.count() != want {
				t.Errorf("%v: %d attempts have %d lines, not %d", failure, attempts[i], lines.count(), want)
			}
		})
	}
	if attempts[0] < 10 || attempts[0] != attempts[1] {
		t.Errorf("a reported failure was tried %d times, another one %d times", attempts[0], attempts[1])
	}
}

// A slow reconcile, which no worker waits for, is retried and logged by the same rule.
func TestReportedErrorsOfSlowReconcilesAreNotLogged(t *testing.T) {
	g := NewWithT(t)
	for key, c := range map[string]struct {
		err  error
		want int
	}{"a1": {&ReportedError{Err: errors.New("refused")}, 0}, "b1": {errors.New("no connection"), 1}} {
		lines := &logged{}
		f := newFixture(t, key)
		f.logger = lines.logger()
		f.beginSlow(g, key)
		f.outcome[key] <- outcome{err: c.err}
		g.Eventually(f.enqueued).Should(Receive(Equal(added{key, minSlowRetryDelay})))
		g.Expect(lines.count()).To(Equal(c.want), key)
	}
}

// logged counts the errors in a log.
type logged struct {
	lock  gosync.Mutex
	lines int
}

func (l *logged) logger() logr.Logger {
	return funcr.New(func(string, string) {
		l.lock.Lock()
		defer l.lock.Unlock()
		l.lines++
	}, funcr.Options{})
}

func (l *logged) count() int {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.lines
}
