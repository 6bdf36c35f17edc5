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
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// settings are the flags of the command.
type settings struct {
	metadata
	platforms []v1.Platform
	// source is the directory of the source, and out that for the results. ldflags are passed to the linker.
	source, out, ldflags string
	// syft is the path of the program that makes SBOMs; empty to make none.
	syft string
	// push is where to push the image to; nil to push nowhere.
	push name.Reference
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "Cannot make the image:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}

func parse(args []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	platforms := flags.String("platforms", "linux/amd64,linux/arm64", "platforms of the image")
	created := flags.String("created", "", "time of the commit, in RFC 3339")
	flags.StringVar(&s.version, "version", "", "version of the image")
	flags.StringVar(&s.revision, "revision", "", "commit that the image is built from")
	flags.StringVar(&s.ldflags, "ldflags", "", "flags for the linker")
	flags.StringVar(&s.source, "source", ".", "directory of the source")
	flags.StringVar(&s.out, "out", "dist", "directory for the image")
	flags.StringVar(&s.syft, "syft", "", "program that makes an SBOM for each platform; none without it")
	repository := flags.String("push", "", "repository to push the image to, as REPOSITORY[:TAG]; the default tag is the version")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	for text := range strings.SplitSeq(*platforms, ",") {
		platform, err := v1.ParsePlatform(text)
		if err != nil || platform.OS == "" || platform.Architecture == "" {
			return s, fmt.Errorf("-platforms: %q is not a platform such as linux/amd64", text)
		}
		s.platforms = append(s.platforms, *platform)
	}
	var err error
	// The programs are built in the directory of the source.
	if s.out, err = filepath.Abs(s.out); err != nil {
		return s, err
	}
	if s.created, err = time.Parse(time.RFC3339, *created); err != nil {
		return s, fmt.Errorf("-created: %w", err)
	}
	if s.version == "" || s.revision == "" {
		return s, fmt.Errorf("-version and -revision are needed")
	}
	if *repository != "" {
		if s.push, err = name.ParseReference(*repository, name.WithDefaultTag(s.version)); err != nil {
			return s, fmt.Errorf("-push: %w", err)
		}
	}
	return s, nil
}

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	index, sboms, err := build(ctx, s)
	if err != nil {
		return err
	}
	if err := write(s, index, sboms); err != nil || s.push == nil {
		return err
	}
	if err := push(ctx, index, s.push); err != nil {
		return err
	}
	if err := pushSBOMs(ctx, index, s.metadata, sboms, s.push.Context()); err != nil {
		return err
	}
	fmt.Printf("pushed %s\n", s.push.Name())
	return nil
}

// build builds the images of all platforms, and their SBOMs if there is a program for it.
func build(ctx context.Context, s settings) (v1.ImageIndex, []sbom, error) {
	images := make([]platformImage, 0, len(s.platforms))
	var sboms []sbom
	for _, platform := range s.platforms {
		dir := filepath.Join(s.out, "programs", platform.OS+"-"+platform.Architecture)
		if err := compile(ctx, s.source, dir, platform, s.ldflags); err != nil {
			return nil, nil, err
		}
		image, err := newImage(dir, platform, s.metadata)
		if err != nil {
			return nil, nil, err
		}
		one := platformImage{platform, image}
		images = append(images, one)
		if s.syft == "" {
			continue
		}
		content, err := scan(ctx, s.syft, s.metadata, one)
		if err != nil {
			return nil, nil, err
		}
		sboms = append(sboms, content)
	}
	return newIndex(images, s.metadata), sboms, nil
}

// write writes the image, its digest and its SBOMs into the directory for the results.
func write(s settings, index v1.ImageIndex, sboms []sbom) error {
	layout := filepath.Join(s.out, "image")
	if err := writeLayout(layout, index, s.metadata); err != nil {
		return err
	}
	archive := filepath.Join(s.out, "image.tar")
	if err := writeArchive(archive, layout, s.created); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.out, "image.digest"), []byte(digest.String()+"\n"), 0o644); err != nil { //nolint:gosec // whoever runs make names the directory
		return err
	}
	documents, err := writeSBOMs(s.out, sboms)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n%s: an OCI layout\n%s: the same as an archive, for example for podman load and skopeo copy\n", digest, layout, archive)
	for _, document := range documents {
		fmt.Printf("%s: an SBOM in SPDX\n", document)
	}
	return nil
}
