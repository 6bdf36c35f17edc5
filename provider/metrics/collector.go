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

package metrics

import (
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Collector reads metrics off all that runs of one type. Create it with [New].
type Collector[T comparable] struct {
	descs   []*prometheus.Desc
	collect func(running []T, metrics chan<- prometheus.Metric)

	lock    sync.Mutex
	sources map[T]struct{}
}

// New returns a collector of the metrics described. At each scrape read is called with all that runs, and must send each
// series once: where several have the same labels, and one may still be ending when the next has begun, it adds them up.
func New[T comparable](read func(running []T, metrics chan<- prometheus.Metric), described ...*prometheus.Desc) *Collector[T] {
	return &Collector[T]{descs: described, collect: read, sources: map[T]struct{}{}}
}

// Add has something read from now on, until it is removed.
func (c *Collector[T]) Add(one T) (remove func()) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.sources[one] = struct{}{}
	return func() {
		c.lock.Lock()
		defer c.lock.Unlock()
		delete(c.sources, one)
	}
}

// Describe implements [prometheus.Collector].
func (c *Collector[T]) Describe(descriptions chan<- *prometheus.Desc) {
	for _, one := range c.descs {
		descriptions <- one
	}
}

// Collect implements [prometheus.Collector].
func (c *Collector[T]) Collect(metrics chan<- prometheus.Metric) {
	c.lock.Lock()
	running := slices.Collect(maps.Keys(c.sources))
	c.lock.Unlock()
	c.collect(running, metrics)
}
