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

package download

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"
)

const (
	// A release's largest file, kube-apiserver, has some 90 MB.
	maxFile = 512 << 20
	// The largest checksum file is a release as GitHub's API returns it.
	maxChecksumFile = 4 << 20

	connectLimit = 5 * time.Second
	answerLimit  = 30 * time.Second
	fileLimit    = 20 * time.Minute

	maxRedirects = 10
)

// ErrUnavailable means that a server could not be reached, or did not answer with the file. A file with a wrong checksum is no such
// error.
var ErrUnavailable = errors.New("not available")

// unavailableError marks an error as ErrUnavailable, and keeps its text.
type unavailableError struct{ error }

func (e unavailableError) Unwrap() error { return e.error }

func (unavailableError) Is(target error) bool { return target == ErrUnavailable }

// Client downloads over HTTPS only.
type Client struct {
	HTTP *http.Client
	// Timeout is for one program, with its checksum.
	Timeout time.Duration
	// MaxFile is the maximum size of a file, and of a program in an archive, in bytes.
	MaxFile int64
}

// NewClient returns a Client that uses the proxy of the environment.
func NewClient() Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: connectLimit}).DialContext
	transport.ResponseHeaderTimeout = answerLimit
	return Client{
		HTTP:    &http.Client{Transport: transport, CheckRedirect: secureRedirect},
		Timeout: fileLimit,
		MaxFile: maxFile,
	}
}

func secureRedirect(request *http.Request, via []*http.Request) error {
	if request.URL.Scheme != "https" {
		return fmt.Errorf("redirected to %s, which is not https", request.URL)
	}
	if len(via) >= maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	return nil
}

// save downloads a file and returns its SHA-256 checksum.
func (c Client) save(ctx context.Context, from, to string) (checksum string, err error) {
	body, err := c.get(ctx, from)
	if err != nil {
		return "", err
	}
	defer body.Close() //nolint:errcheck // it was only read
	file, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return "", fmt.Errorf("write the file of %s: %w", from, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	hash := sha256.New()
	if err := copyUpTo(io.MultiWriter(file, hash), body, c.MaxFile); err != nil {
		return "", fmt.Errorf("get %s: %w", from, because(ctx, err))
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// read returns the content of a checksum file.
func (c Client) read(ctx context.Context, from string) ([]byte, error) {
	body, err := c.get(ctx, from)
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // it was only read
	content, err := io.ReadAll(io.LimitReader(body, maxChecksumFile+1))
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", from, because(ctx, err))
	}
	if len(content) > maxChecksumFile {
		return nil, fmt.Errorf("get %s: %w", from, tooLarge(maxChecksumFile))
	}
	return content, nil
}

func (c Client) get(ctx context.Context, from string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", from, err)
	}
	if request.URL.Scheme != "https" {
		return nil, fmt.Errorf("get %s: only https is allowed", from)
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		// The client's error names the URL of the last redirect, not the one that was asked for.
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err
		}
		return nil, unavailableError{fmt.Errorf("get %s: %w", from, because(ctx, err))}
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(unavailableError{fmt.Errorf("get %s: the server answers %s", from, response.Status)}, response.Body.Close())
	}
	return response.Body, nil
}

// copyUpTo copies all of from, which must not be larger than limit.
func copyUpTo(to io.Writer, from io.Reader, limit int64) error {
	copied, err := io.Copy(to, io.LimitReader(from, limit+1))
	if err != nil {
		return err
	}
	if copied > limit {
		return tooLarge(limit)
	}
	return nil
}

func tooLarge(limit int64) error { return fmt.Errorf("it is larger than %d bytes", limit) }

// because replaces the error of an ended context by the reason for its end.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
