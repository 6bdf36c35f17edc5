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
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// normalize returns a packaged chart whose files have the time given: Helm gives them the time of the packaging. It is an error
// if the chart has another version than the one given, or deploys another one. An empty version stands for any.
func normalize(packed []byte, version string, modified time.Time) ([]byte, error) {
	compressed, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	var result bytes.Buffer
	compressor := gzip.NewWriter(&result)
	// Helm finds its charts by these.
	compressor.Comment, compressor.Extra = compressed.Comment, compressed.Extra
	from, to := tar.NewReader(compressed), tar.NewWriter(compressor)
	described := false
	for {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(from)
		if err != nil {
			return nil, err
		}
		if isChartFile(header.Name) {
			described = true
			if err := checkVersion(content, version); err != nil {
				return nil, err
			}
		}
		if err := to.WriteHeader(&tar.Header{Name: header.Name, Mode: header.Mode, Size: header.Size, Typeflag: header.Typeflag, ModTime: modified.UTC().Truncate(time.Second)}); err != nil {
			return nil, err
		}
		if _, err := to.Write(content); err != nil {
			return nil, err
		}
	}
	if !described {
		return nil, errors.New("it has no Chart.yaml: it is no packaged chart")
	}
	if err := errors.Join(to.Close(), compressor.Close()); err != nil {
		return nil, err
	}
	return result.Bytes(), nil
}

// isChartFile reports whether a file of the archive describes the chart itself, and not one that it depends on.
func isChartFile(name string) bool {
	dir, file := path.Split(name)
	return file == "Chart.yaml" && strings.Count(dir, "/") == 1
}

// checkVersion returns an error unless the chart and the image that it deploys are of the version given.
func checkVersion(chartFile []byte, version string) error {
	var chart struct {
		Version    string `json:"version"`
		AppVersion string `json:"appVersion"`
	}
	if err := yaml.Unmarshal(chartFile, &chart); err != nil {
		return fmt.Errorf("read Chart.yaml: %w", err)
	}
	want := strings.TrimPrefix(version, "v")
	if want != "" && (chart.Version != want || chart.AppVersion != want) {
		return fmt.Errorf("the chart is of version %s and deploys %s, but the release is %s: change Chart.yaml and commit it before the tag", chart.Version, chart.AppVersion, want)
	}
	return nil
}
