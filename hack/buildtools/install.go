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
	"fmt"
	"path/filepath"

	"github.com/synchub-dev/synchub/hack/buildtools/download"
	"github.com/synchub-dev/synchub/hack/screen"
)

// pinsFile has the pinned checksums of downloads, in hack/tools. Without it the checksums of the projects count.
const pinsFile = "downloads.sha256"

// installer puts tools into bin/.
type installer struct {
	toolsDir, binDir string
	client           download.Client
	on               platform
}

func (i installer) pinsPath() string { return filepath.Join(i.toolsDir, pinsFile) }

// downloadOrBuild downloads the tools that their projects publish for this platform, and builds the other tools. If mayBuild is
// set, it also builds what cannot be downloaded here. A file with a wrong checksum is always an error.
func (i installer) downloadOrBuild(ctx context.Context, show *screen.Screen, missing []pinned, mayBuild bool) error {
	pins, err := download.ReadPins(i.pinsPath())
	if err != nil {
		return err
	}
	downloads, unpublished := divide(missing, i.on)
	for n, d := range downloads {
		step := fmt.Sprintf("[%d/%d] downloading %s %s", n+1, len(downloads), d.name, d.version)
		err := show.Step(step, func() error { return i.download(ctx, d, pins) })
		if mayBuild && ctx.Err() == nil && errors.Is(err, download.ErrUnavailable) {
			var rest []pinned
			for _, one := range downloads[n:] {
				rest = append(rest, one.pinned)
			}
			show.Println(fmt.Sprintf("%s cannot be downloaded here, so these are built from source, which takes minutes: %s", d.name, names(rest)))
			return i.build(ctx, show, append(rest, unpublished...))
		}
		if err != nil {
			return err
		}
	}
	if len(unpublished) > 0 {
		show.Println(fmt.Sprintf("built from source, since their projects publish no program for %s: %s", i.on, names(unpublished)))
	}
	return i.build(ctx, show, unpublished)
}

// published is a tool that can be downloaded.
type published struct {
	pinned
	release download.Release
}

// divide separates the tools whose projects publish them for a platform from those that must be built.
func divide(missing []pinned, on platform) (downloads []published, unpublished []pinned) {
	for _, p := range missing {
		if release, ok := p.releaseFor(on); ok {
			downloads = append(downloads, published{pinned: p, release: release})
		} else {
			unpublished = append(unpublished, p)
		}
	}
	return downloads, unpublished
}

func (i installer) download(ctx context.Context, p published, pins download.Pins) error {
	if err := i.client.Install(ctx, p.release, pins, p.binary(i.binDir)); err != nil {
		return fmt.Errorf("download %s %s: %w\nTo build it from source instead, run: go run ./hack/buildtools %s", p.name, p.version, err, p.name)
	}
	return p.recordInstalled(i.binDir)
}

// pin writes the checksums that the projects publish now, of all tools that can be downloaded. The author who commits the file
// has looked at them.
func (i installer) pin(ctx context.Context, show *screen.Screen) error {
	pins := download.Pins{}
	for _, t := range table {
		p, err := pinTool(i.toolsDir, t)
		if err != nil {
			return err
		}
		for _, on := range platforms {
			release, ok := p.releaseFor(on)
			if !ok {
				continue
			}
			if pins[release.URL], err = i.client.Published(ctx, release); err != nil {
				return fmt.Errorf("pin %s %s for %s: %w", p.name, p.version, on, err)
			}
		}
	}
	show.Println(fmt.Sprintf("pinned %d checksums in %s", len(pins), i.pinsPath()))
	return pins.Write(i.pinsPath())
}
