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

// Command demo runs a complete synchub on this machine: a kcp, two clusters, and the hub. It shows Deployments being
// synced from the mailboxes to the clusters, and their status being synced back. Then everything keeps running for
// exploration until the demo is interrupted. Its data, kubeconfigs and logs are in .demo/.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/synchub-dev/synchub/hack/demo/recording"
	"github.com/synchub-dev/synchub/hack/screen"
)

func main() {
	once := flag.Bool("once", false, "end as soon as everything has been shown; the exit status is 1 if it did not work")
	hubLogLevel := flag.String("hub-log-level", "info", "how much the hub logs: error, info, debug or trace")
	record := flag.String("record", "", "write what the demo shows once everything is up into this file, as an animated SVG")
	pictures := flag.String("pictures", "", "break something at last, and draw the dashboards of the chart into this directory")
	flag.Parse()
	// The first signal stops everything in order. The second signal ends this program immediately, and with it the
	// programs that it started.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := start(ctx, *once, *hubLogLevel, *record, *pictures); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// The recording has the width of a usual terminal.
const recordedRows, recordedColumns = 24, 100

// start runs the demo, and writes its recording if everything worked.
func start(ctx context.Context, once bool, hubLogLevel, record, pictures string) error {
	state, err := openState()
	if err != nil {
		return err
	}
	defer state.close()
	demo := newDemo(state, screen.New(os.Stdout), hubLogLevel)
	demo.pictures = pictures
	if record == "" {
		return demo.run(ctx, once)
	}
	demo.recording = recording.New(recordedRows, recordedColumns)
	if err := demo.run(ctx, true); err != nil {
		return err
	}
	file, err := os.Create(record)
	if err != nil {
		return fmt.Errorf("write the recording: %w", err)
	}
	return errors.Join(demo.recording.WriteSVG(file, "Two teams on one fleet: the demo in a terminal"), file.Close())
}
