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
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/synchub-dev/synchub/hack/buildtools/download"
	"github.com/synchub-dev/synchub/hack/screen"
)

func main() {
	var opts options
	flag.StringVar(&opts.purpose, "for", "", "install the tools for a purpose: "+strings.Join(purposes, ", "))
	flag.StringVar(&opts.from, "from", fromSource, "where tools come from: source, which builds them; download, for those that their projects publish as programs; auto, "+
		"which downloads where that is possible and builds otherwise")
	flag.BoolVar(&opts.pin, "pin", false, "write the checksums of all downloads into hack/tools/"+pinsFile+", and install nothing")
	flag.Parse()
	opts.names = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, opts)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "buildtools:", err)
		os.Exit(1)
	}
}

type options struct {
	purpose string
	names   []string
	from    string
	pin     bool
}

// The values of the flag -from.
const (
	fromSource   = "source"
	fromDownload = "download"
	fromAuto     = "auto"
)

func run(ctx context.Context, opts options) error {
	binDir, toolsDir, err := directories()
	if err != nil {
		return err
	}
	chosen, err := choose(opts.purpose, opts.names)
	if err != nil {
		return err
	}
	show := screen.New(os.Stdout)
	i := installer{toolsDir: toolsDir, binDir: binDir, client: download.NewClient(), on: platform{runtime.GOOS, runtime.GOARCH}}
	if opts.pin {
		return i.pin(ctx, show)
	}
	missing, err := outdated(toolsDir, binDir, chosen)
	if err != nil {
		return err
	}
	switch opts.from {
	case fromSource:
		return i.build(ctx, show, missing)
	case fromDownload, fromAuto:
		return i.downloadOrBuild(ctx, show, missing, opts.from == fromAuto)
	default:
		return fmt.Errorf("-from=%s is not known: use %s, %s or %s", opts.from, fromSource, fromDownload, fromAuto)
	}
}

// directories returns bin/ and hack/tools/ of the repository. The command must run in its root.
func directories() (binDir, toolsDir string, err error) {
	root, err := os.Getwd()
	if err != nil {
		return "", "", fmt.Errorf("find the repository: %w", err)
	}
	toolsDir = filepath.Join(root, "hack", "tools")
	if _, err := os.Stat(toolsDir); err != nil {
		return "", "", fmt.Errorf("run this in the root of the repository: %w", err)
	}
	binDir = filepath.Join(root, "bin")
	if err := os.MkdirAll(binDir, 0o755); err != nil {
		return "", "", fmt.Errorf("create the directory for tools: %w", err)
	}
	return binDir, toolsDir, nil
}

// outdated returns the tools whose binary is missing or was built from another pin.
func outdated(toolsDir, binDir string, chosen []tool) ([]pinned, error) {
	var result []pinned
	for _, t := range chosen {
		p, err := pinTool(toolsDir, t)
		if err != nil {
			return nil, err
		}
		current, err := p.isCurrent(binDir)
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", p.binary(binDir), err)
		}
		if !current {
			result = append(result, p)
		}
	}
	return result, nil
}
