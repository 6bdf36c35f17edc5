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

package targetlabels

import (
	"maps"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

func TestValues(t *testing.T) {
	Set("uid", "florin", "cluster")
	if got := Values("uid", "more"); !slices.Equal(got, []string{"uid", "florin", "cluster", "more"}) || len(got) != len(Names("resource")) {
		t.Errorf("the values are %q", got)
	}
	if got := Labels("uid"); !maps.Equal(got, prometheus.Labels{"sync_target": "uid", "name": "florin", "inventory": "cluster"}) {
		t.Errorf("the labels are %v", got)
	}
	if got := LogValues("uid"); !slices.Equal(got, []any{"syncTarget", "florin", "inventory", "cluster", "syncTargetUID", types.UID("uid")}) {
		t.Errorf("the log has %v", got)
	}
	Forget("uid")
	if got := LogValues("uid"); !slices.Equal(got, []any{"syncTargetUID", types.UID("uid")}) {
		t.Errorf("without a name the log has %v", got)
	}
	if got := Values("uid"); !slices.Equal(got, []string{"uid", "", ""}) {
		t.Errorf("without a name the values are %q", got)
	}
}
