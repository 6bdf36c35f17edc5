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
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"golang.org/x/net/html"
)

// checkLinks returns an error for each link in the site that leads to no file of the site, or to no element there. It
// finds mistakes in the layout, and in HTML of the pages.
func checkLinks(files map[string][]byte) error {
	elements, links := map[string]map[string]bool{}, map[string][]string{}
	for name, content := range files {
		if path.Ext(name) != ".html" {
			continue
		}
		var err error
		if elements[name], links[name], err = readHTML(content); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	var errs []error
	for name, destinations := range links {
		for _, destination := range destinations {
			if isAbsolute.MatchString(destination) {
				continue
			}
			to, anchor, hasAnchor := strings.Cut(destination, "#")
			file := name
			if to != "" {
				file = path.Join(path.Dir(name), to)
			}
			if _, exists := files[file]; !exists || hasAnchor && !elements[file][anchor] {
				errs = append(errs, fmt.Errorf("%s: the link %s leads nowhere", name, destination))
			}
		}
	}
	return errors.Join(errs...)
}

// readHTML returns the identifiers of the elements, and the links.
func readHTML(content []byte) (identifiers map[string]bool, links []string, err error) {
	identifiers = map[string]bool{}
	tokens := html.NewTokenizer(bytes.NewReader(content))
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			if err := tokens.Err(); !errors.Is(err, io.EOF) {
				return nil, nil, err
			}
			return identifiers, links, nil
		}
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		for _, attribute := range tokens.Token().Attr {
			switch attribute.Key {
			case "id":
				identifiers[attribute.Val] = true
			case "href", "src":
				links = append(links, attribute.Val)
			}
		}
	}
}
