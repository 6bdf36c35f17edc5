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

// Collector collects metrics from running components of type T. Create it with [New]. It is safe for concurrent use.
type Collector[T comparable] struct {
	descs   []*prometheus.Desc
	collect func(running []T, metrics chan<- prometheus.Metric)

	lock    sync.Mutex
	sources map[T]struct{}
}

// New returns a collector of the described metrics. At each scrape it calls read with all added components. read must send
// each series once: if several components have the same labels, for example a new one beside one that is ending, read adds
// up their values.
func New[T comparable](read func(running []T, metrics chan<- prometheus.Metric), described ...*prometheus.Desc) *Collector[T] {
	return &Collector[T]{descs: described, collect: read, sources: map[T]struct{}{}}
}

// Add adds a component to the following scrapes, until remove is called.
func (c *Collector[T]) Add(source T) (remove func()) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.sources[source] = struct{}{}
	return func() {
		c.lock.Lock()
		defer c.lock.Unlock()
		delete(c.sources, source)
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
