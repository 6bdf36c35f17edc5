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

package baseline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"
)

// Serve runs the baseline syncer: it reads a [Config], responds when all lists are complete, and handles [Request]s until
// the input ends.
func Serve(ctx context.Context, input io.Reader, output io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	orders, answers := json.NewDecoder(input), json.NewEncoder(output)
	var plan Config
	if err := orders.Decode(&plan); err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	var s *syncer
	answer := measure(func() (count int, err error) {
		s, err = newSyncer(ctx, plan)
		return 0, err
	})
	for {
		if err := answers.Encode(answer); err != nil {
			return fmt.Errorf("answer: %w", err)
		}
		var order Request
		if err := orders.Decode(&order); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read an order: %w", err)
		}
		answer = measure(func() (int, error) { return s.handle(ctx, order) })
	}
}

// measure runs a function and returns its result as a response.
func measure(do func() (objects int, err error)) Response {
	started := time.Now()
	objects, err := do()
	answer := Response{Objects: objects, Elapsed: time.Since(started), CPU: processorTime()}
	if err != nil {
		answer.Error = err.Error()
	}
	return answer
}

// processorTime returns the CPU time of the process so far.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
