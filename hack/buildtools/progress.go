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
	"fmt"
	"io"
	"os"
	"time"
)

// progress shows the current step and its duration.
type progress struct {
	out io.Writer
	// live rewrites one line every second. Otherwise progress adds a line every half minute.
	live bool
}

func newProgress(out *os.File) progress {
	info, err := out.Stat()
	return progress{out: out, live: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

// during shows the step while work runs, and then its outcome. It returns the error of work.
func (p progress) during(step string, work func() error) error {
	begun := time.Now()
	elapsed := func() time.Duration { return time.Since(begun).Round(time.Second) }
	interval := 30 * time.Second
	if p.live {
		interval = time.Second
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()

	result := make(chan error, 1)
	go func() { result <- work() }()
	p.show(step + " …")
	for {
		select {
		case <-ticker.C:
			p.show(fmt.Sprintf("%s … %s", step, elapsed()))
		case err := <-result:
			outcome := "done"
			if err != nil {
				outcome = "failed"
			}
			p.show(fmt.Sprintf("%s … %s after %s", step, outcome, elapsed()))
			if p.live {
				fmt.Fprintln(p.out)
			}
			return err
		}
	}
}

func (p progress) show(line string) {
	if p.live {
		fmt.Fprintf(p.out, "\r\033[K%s", line)
		return
	}
	fmt.Fprintln(p.out, line)
}
