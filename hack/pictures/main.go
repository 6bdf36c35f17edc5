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
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

type options struct {
	metrics          string
	duration, period time.Duration
	dashboards, out  string
	variables        map[string]string
}

func main() {
	var opts options
	flag.StringVar(&opts.metrics, "metrics", "", "the URL of the hub's metrics")
	flag.DurationVar(&opts.duration, "for", 3*time.Minute, "how long to record")
	flag.DurationVar(&opts.period, "every", 5*time.Second, "how often to read the metrics")
	flag.StringVar(&opts.dashboards, "dashboards", "../../charts/synchub/files/dashboards", "the directory of the dashboards")
	flag.StringVar(&opts.out, "out", "../../docs/images", "the directory for the pictures")
	inventory := flag.String("inventory", "", "the value of the variable inventory")
	name := flag.String("name", "", "the value of the variable name")
	flag.Parse()
	opts.variables = map[string]string{"inventory": *inventory, "name": *name}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, opts)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, opts options) (err error) {
	dashboards, err := readDashboards(opts.dashboards)
	if err != nil {
		return err
	}
	r, err := newRecording(opts.period)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.record(ctx, opts.metrics, opts.duration); err != nil {
		return err
	}
	for _, d := range dashboards {
		picture, err := d.draw(ctx, newQuerier(r, opts.variables))
		if err != nil {
			return fmt.Errorf("draw %s: %w", d.file, err)
		}
		name := "dashboard-" + strings.TrimPrefix(strings.TrimSuffix(d.file, ".json"), "synchub-") + ".svg"
		if err := os.WriteFile(filepath.Join(opts.out, name), picture, 0o644); err != nil {
			return fmt.Errorf("write a picture: %w", err)
		}
	}
	return nil
}
