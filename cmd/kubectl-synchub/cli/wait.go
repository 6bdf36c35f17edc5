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

package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
)

// WaitFlags are --wait and --timeout, which mean the same in all commands.
type WaitFlags struct {
	Wait    bool
	Timeout time.Duration
}

// AddWait adds the flags with their defaults. until completes "wait until".
func (f *WaitFlags) AddWait(command *cobra.Command, until string, wait bool, timeout time.Duration) {
	command.Flags().BoolVar(&f.Wait, "wait", wait, "wait until "+until)
	f.AddTimeout(command, timeout)
}

// AddTimeout adds only --timeout, to a command that always waits.
func (f *WaitFlags) AddTimeout(command *cobra.Command, timeout time.Duration) {
	command.Flags().DurationVar(&f.Timeout, "timeout", timeout, "how long to wait; 0 waits for ever")
}

// CheckTimeout validates the timeout.
func (f *WaitFlags) CheckTimeout() error {
	if f.Timeout < 0 {
		return errors.New("--timeout: it must not be negative")
	}
	return nil
}

// Limit returns the timeout. For a wait for ever it is longer than any program runs.
func (f *WaitFlags) Limit() time.Duration {
	if f.Timeout == 0 {
		return math.MaxInt64
	}
	return f.Timeout
}

// SyncTargetWait waits for the hub to do something with a SyncTarget.
type SyncTargetWait struct {
	*InventoryOptions
	WaitFlags
	// Done reports whether a state ends the wait. It is nil to wait until the SyncTarget is gone.
	Done func(*edgev2alpha1.SyncTarget) bool
	// Describe describes a state that is not done. The error after the timeout has all of it.
	Describe func(*edgev2alpha1.SyncTarget) string
	// Steps returns the lines of progress for a state. A line is shown unless the state before has it. If Steps is nil, the
	// first line of Describe is shown.
	Steps func(*edgev2alpha1.SyncTarget) []string
	// Result is the resulting state of the SyncTarget, in messages.
	Result string
	// Notes returns lines to print before the result. It may be nil.
	Notes func(*edgev2alpha1.SyncTarget) []string
}

// Run waits, and prints the result. In a dry run, or without --wait, it does nothing.
func (w *SyncTargetWait) Run(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget) error {
	if !w.Wait || w.DryRun != DryRunNone {
		return nil
	}
	workspace, err := w.Client()
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, w.Limit())
	defer cancel()
	seen, isDone := syncTarget, false
	var shown []string
	current, err := registration.WatchSyncTarget(waiting, workspace, syncTarget, func(current *edgev2alpha1.SyncTarget) bool {
		if current == nil {
			return true
		}
		seen, isDone = current, w.Done != nil && w.Done(current)
		shown = w.showSteps(shown, current, isDone)
		return isDone
	})
	if isGone := current == nil || errors.Is(err, registration.ErrReplaced); isDone || isGone && w.Done == nil {
		if w.Notes != nil {
			for _, line := range w.Notes(seen) {
				w.Note(line)
			}
		}
		return w.Print(seen, w.Result)
	}
	switch {
	case current == nil:
		return fmt.Errorf("the SyncTarget %s was deleted during the wait", syncTarget.Name)
	case waiting.Err() == nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("the SyncTarget %s was not %s after %s: %s", syncTarget.Name, w.Result, w.Timeout, w.Describe(seen))
}

// showSteps shows the progress of a state, and returns its lines. shown are the lines of the state before.
func (w *SyncTargetWait) showSteps(shown []string, seen *edgev2alpha1.SyncTarget, isDone bool) (steps []string) {
	switch {
	case w.Steps != nil:
		steps = w.Steps(seen)
	case !isDone:
		steps = []string{firstLine(w.Describe(seen))}
	}
	for _, step := range steps {
		if !slices.Contains(shown, step) {
			w.Progress("%s", step)
		}
	}
	return steps
}

// IsReadyNow reports whether the SyncTarget is ready, by a status for the current spec.
func IsReadyNow(syncTarget *edgev2alpha1.SyncTarget) bool {
	ready := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionReady)
	return registration.IsReady(syncTarget) && ready.ObservedGeneration >= syncTarget.Generation
}

// IsSuspendedNow reports whether the hub has stopped the sync, by a status for the current spec.
func IsSuspendedNow(syncTarget *edgev2alpha1.SyncTarget) bool {
	suspended := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionSuspended)
	return suspended != nil && suspended.Status == metav1.ConditionTrue && suspended.ObservedGeneration >= syncTarget.Generation
}

// DescribeNotReady returns the reasons why a SyncTarget is not ready.
func DescribeNotReady(syncTarget *edgev2alpha1.SyncTarget) string {
	if text := registration.DescribeNotReady(syncTarget); text != "" {
		return text
	}
	return "the hub has not seen the change yet"
}
