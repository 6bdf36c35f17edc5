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

package objectsync

import (
	"math/rand/v2"
	"strconv"
	gosync "sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func hasEnded(pass *firstPass) bool {
	select {
	case <-pass.done:
		return true
	default:
		return false
	}
}

func TestFirstPass(t *testing.T) {
	a, b, other := someKeys[0], someKeys[1], someKeys[2]
	begin := func(keys ...types.NamespacedName) func(*firstPass) {
		return func(p *firstPass) { p.start(keys, true) }
	}
	tried := func(key types.NamespacedName) func(*firstPass) { return func(p *firstPass) { _ = p.tried(key, true) } }
	end := func(p *firstPass) { p.finish() }
	for name, test := range map[string]struct {
		steps []func(*firstPass)
		want  bool
	}{
		"not started":                    {nil, false},
		"tried before the start":         {[]func(*firstPass){tried(a)}, false},
		"no keys":                        {[]func(*firstPass){begin()}, true},
		"nothing was tried":              {[]func(*firstPass){begin(a, b)}, false},
		"one was tried":                  {[]func(*firstPass){begin(a, b), tried(a)}, false},
		"one was tried often":            {[]func(*firstPass){begin(a, b), tried(a), tried(a)}, false},
		"another was tried":              {[]func(*firstPass){begin(a, b), tried(a), tried(other)}, false},
		"all were tried":                 {[]func(*firstPass){begin(a, b), tried(b), tried(a)}, true},
		"all were tried, and again":      {[]func(*firstPass){begin(a), tried(a), tried(a), tried(b)}, true},
		"one was tried before the start": {[]func(*firstPass){tried(a), begin(a)}, false},
		"one key twice":                  {[]func(*firstPass){begin(a, a), tried(a)}, true},
		"finished early":                 {[]func(*firstPass){begin(a), end}, true},
		"finished before the start":      {[]func(*firstPass){end, begin(a)}, true},
		"finished early, then tried":     {[]func(*firstPass){begin(a), end, tried(a), end}, true},
	} {
		pass := newFirstPass()
		for _, step := range test.steps {
			step(pass)
		}
		if got := hasEnded(pass); got != test.want {
			t.Errorf("%s: want %v, got %v", name, test.want, got)
		}
	}
}

// Later waves do not wait for an unreadable mailbox. The first pass is over only after the mailbox was readable and each key was
// tried again.
func TestFirstPassWithoutTheMailbox(t *testing.T) {
	a, b := someKeys[0], someKeys[1]
	pass := newFirstPass()
	expect := func(step string, ended, over bool) {
		t.Helper()
		if hasEnded(pass) != ended || pass.isOver() != over {
			t.Errorf("%s: the pass has ended %v and is over %v, want %v and %v", step, hasEnded(pass), pass.isOver(), ended, over)
		}
	}
	pass.start(nil, false)
	expect("the mailbox cannot be read", true, false)
	pass.start(nil, false)
	_ = pass.tried(a, true)
	expect("the mailbox can be read, but its objects are not known yet", true, false)
	pass.start([]types.NamespacedName{a, b}, true)
	expect("the objects of the mailbox are known", true, false)
	_, _ = pass.tried(a, false), pass.tried(b, true)
	expect("one was tried by a reconcile that could not read the mailbox", true, false)
	if !pass.tried(a, true) || pass.tried(a, true) {
		t.Error("the last key does not report the end of the pass exactly once")
	}
	expect("each was tried", true, true)
	pass.start([]types.NamespacedName{a, b}, true)
	expect("the mailbox is listed again", true, true)
}

// An object may be deleted while the mailbox is unreadable. Then no event enqueues it again.
func TestFirstPassForgetsDeletedKeys(t *testing.T) {
	a, b, added := someKeys[0], someKeys[1], someKeys[2]
	pass := newFirstPass()
	pass.start([]types.NamespacedName{a, b}, true)
	_ = pass.tried(a, false)
	pass.start(nil, false)
	if pass.isOver() {
		t.Error("the pass is over though the mailbox cannot be read")
	}
	pass.start([]types.NamespacedName{b, added}, true)
	if pass.isOver() {
		t.Error("the pass is over though a key was not tried")
	}
	if !pass.tried(b, true) || !pass.isOver() {
		t.Error("the pass waits for a removed key, or for one that was added after the start")
	}
}

// Workers try objects concurrently and in any order. The pass ends with the last object, and not before.
func TestFirstPassOfManyWorkers(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 6)) //nolint:gosec // a repeatable order
		var keys []types.NamespacedName
		for number := range 50 {
			keys = append(keys, types.NamespacedName{Name: strconv.Itoa(number)})
		}
		pass := newFirstPass()
		pass.start(keys, true)
		var workers gosync.WaitGroup
		for _, index := range random.Perm(len(keys))[1:] {
			workers.Go(func() { pass.tried(keys[index], true) })
		}
		workers.Wait()
		if hasEnded(pass) {
			t.Fatalf("seed %d: it ended with one object left", seed)
		}
		for _, key := range keys {
			workers.Go(func() { pass.tried(key, true) })
		}
		workers.Wait()
		if !hasEnded(pass) {
			t.Fatalf("seed %d: it has not ended", seed)
		}
	}
}

func TestWaitFor(t *testing.T) {
	closed, open := make(chan struct{}), make(chan struct{})
	close(closed)
	if !waitForAll(t.Context(), nil) || !waitForAll(t.Context(), []<-chan struct{}{closed, closed}) {
		t.Error("it does not continue when all waves are done")
	}
	canceled, cancel := cancelable(t)
	cancel()
	if waitForAll(canceled, []<-chan struct{}{closed, open}) {
		t.Error("it continues although a wave is not done")
	}
}
