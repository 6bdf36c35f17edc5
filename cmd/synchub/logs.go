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
	"io"
	"log"
	"slices"

	"github.com/go-logr/logr"
	uberzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/synchub-dev/synchub/apis/config/v1alpha1"
	"github.com/synchub-dev/synchub/provider/redact"
)

// levels maps the levels of the configuration to zap's levels; debug and trace are V(1) and V(2) of logr.
var levels = map[string]zapcore.Level{"error": zapcore.ErrorLevel, "info": zapcore.InfoLevel, "debug": -1, "trace": -2}

func newLogger(settings v1alpha1.LogConfiguration, to io.Writer) logr.Logger {
	isoTime := func(encoder *zapcore.EncoderConfig) { encoder.EncodeTime = zapcore.ISO8601TimeEncoder }
	encoder := zap.JSONEncoder(isoTime)
	if settings.Format == "console" {
		encoder = zap.ConsoleEncoder(isoTime)
	}
	redacting := zap.RawZapOpts(uberzap.WrapCore(func(core zapcore.Core) zapcore.Core { return redactingCore{core} }))
	return zap.New(encoder, zap.WriteTo(to), zap.Level(levels[settings.Level]), zap.StacktraceLevel(zapcore.PanicLevel), redacting)
}

// debugMessages are messages that controller-runtime logs at the info level for each controller and each of its sources. A hub starts
// dozens of them.
var debugMessages = map[string]bool{"Starting EventSource": true, "Starting Controller": true, "Starting workers": true}

// redactingCore redacts messages and fields when an entry is written. It formats fields lazily, because each
// reconcile has its own logger and most of these loggers write nothing.
type redactingCore struct{ zapcore.Core }

// maxLoggedText is the maximum length of one logged text, in bytes. Most texts are the hub's own.
const maxLoggedText = 4 << 10

// Check adds redactingCore itself to the entry, so that Write receives the entry.
func (r redactingCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	level := entry.Level
	if debugMessages[entry.Message] {
		level = min(level, levels["debug"])
	}
	if r.Enabled(level) {
		return checked.AddCore(entry, r)
	}
	return checked
}

// Write truncates and redacts all texts. Their sources redact them as well; Write also covers texts from elsewhere.
func (r redactingCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	entry.Message = redact.Truncate(entry.Message, maxLoggedText)
	shown := slices.Clone(fields)
	for i, field := range shown {
		switch known := field.Interface.(type) {
		case error:
			if field.Type == zapcore.ErrorType {
				shown[i] = uberzap.String(field.Key, redact.Truncate(known.Error(), maxLoggedText))
			}
		case nil:
			shown[i].String = redact.Truncate(field.String, maxLoggedText)
		}
	}
	return r.Core.Write(entry, shown)
}

// redirectStandardLog sends the standard library's log to the hub's log. net/http writes there and quotes what
// servers send.
func redirectStandardLog(to logr.Logger) {
	log.SetFlags(0)
	log.SetOutput(standardLogWriter{to.WithName("net")})
}

type standardLogWriter struct{ to logr.Logger }

func (s standardLogWriter) Write(line []byte) (int, error) {
	s.to.Info(redact.Text(string(line)))
	return len(line), nil
}

func (r redactingCore) With(fields []zapcore.Field) zapcore.Core {
	return redactingCore{zapcore.NewLazyWith(r.Core, fields)}
}
