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

package rollout

import (
	"context"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
)

// follower prints the progress of the rollout of an EdgePlacement.
type follower struct {
	*cli.Reader
	out io.Writer
	// shown is the last line that was printed.
	shown string
}

// Wait prints to out the progress of the rollout of an EdgePlacement until it is complete.
func Wait(ctx context.Context, config *rest.Config, out io.Writer, name string, flags cli.WaitFlags) error {
	reader, err := cli.NewReader(config)
	if err != nil {
		return err
	}
	return (&follower{Reader: reader, out: out}).wait(ctx, name, flags)
}

// report prints the progress at a state of the EdgePlacement, if it has changed. The error is the reason why the rollout cannot end.
func (f *follower) report(ctx context.Context, seen *edgev2alpha1.EdgePlacement) (done bool, err error) {
	objects, fingerprint, err := PlacedObjects(ctx, f.Reader, seen)
	if err != nil {
		return false, fmt.Errorf("cannot compare the objects with the hub's status: %w", err)
	}
	line, done, err := Progress(seen, len(objects), fingerprint.String())
	f.show(line)
	return done, err
}

// show prints a line, unless it was the last one. It may hold texts of clusters.
func (f *follower) show(line string) {
	if line != f.shown {
		f.shown = line
		fmt.Fprintln(f.out, cli.SanitizeLine(line))
	}
}

// wait observes each state of the EdgePlacement until the rollout is complete. A timeout of zero waits for ever.
func (f *follower) wait(ctx context.Context, name string, flags cli.WaitFlags) error {
	ctx, cancel := context.WithTimeoutCause(ctx, flags.Limit(), fmt.Errorf("the rollout of %s was not complete after %s", name, flags.Timeout.Round(time.Millisecond)))
	defer cancel()
	named := &edgev2alpha1.EdgePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err := registration.WatchObject(ctx, f.Client, named, func(seen *edgev2alpha1.EdgePlacement) (bool, error) {
		if seen == nil {
			return false, fmt.Errorf("the EdgePlacement %s was deleted", name)
		}
		return f.report(ctx, seen)
	})
	if cause := context.Cause(ctx); cause != nil && err != nil {
		return cause
	}
	return err
}
