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

package placement

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/provider/kcp"
)

// parents stands for the parent workspaces: it answers each path, and counts the requests.
type parents struct {
	answers  map[string]error
	requests int
}

func (p *parents) LogicalClusterOf(_ context.Context, path logicalcluster.Path) (logicalcluster.Name, error) {
	p.requests++
	if err := p.answers[path.String()]; err != nil {
		return "", err
	}
	return logicalcluster.Name("cluster-of-" + path.Base()), nil
}

// A refuted path is requested again after a minute. If kcp does not answer, the result is not cached, and the
// next attempt sends a request at once.
func TestPathsOfInventories(t *testing.T) {
	asked := &parents{answers: map[string]error{
		"root:gone": fmt.Errorf("root:gone: %w", kcp.ErrNoWorkspace), "root:slow": errors.New("connection refused"),
	}}
	clock := clocktesting.NewFakeClock(time.Now())
	v := newPathVerifier(&Options{Paths: asked, Clock: clock})
	for range 3 {
		clusters, err := v.clustersOf(t.Context(), []string{"root:gone", "root:here"})
		if len(clusters) != 1 || clusters[0] != "cluster-of-here" || !isPathRefuted(err) {
			t.Fatalf("%v, %v", clusters, err)
		}
	}
	if asked.requests != 2 {
		t.Errorf("%d requests for two paths", asked.requests)
	}
	clock.SetTime(clock.Now().Add(pathRetryDelay))
	if _, err := v.clustersOf(t.Context(), []string{"root:gone"}); err == nil || asked.requests != 3 {
		t.Errorf("%v after %d requests", err, asked.requests)
	}
	for round := range 2 {
		clusters, err := v.clustersOf(t.Context(), []string{"root:gone", "root:slow", "root:here"})
		if clusters != nil || err == nil || isPathRefuted(err) || asked.requests != 4+round {
			t.Errorf("round %d: %v, %v after %d requests", round, clusters, err, asked.requests)
		}
	}
	if checkPaths(maxPaths) != nil || checkPaths(maxPaths+1) == nil {
		t.Error("the number of paths is not bounded")
	}
}
