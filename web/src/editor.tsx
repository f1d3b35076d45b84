// The SQL editor. It lives in a shadow tree: there CodeMirror puts its styles into adopted style sheets, which a strict
// Content-Security-Policy allows, and not into <style> elements, which it refuses.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { MySQL, sql as sqlLanguage } from '@codemirror/lang-sql';
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language';
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search';
import { Compartment, EditorState, Prec, type Extension } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers, placeholder } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { useEffect, useRef } from 'preact/hooks';

const theme = EditorView.theme({
  '&': { height: '100%', fontSize: '14px', backgroundColor: 'var(--sheet)', color: 'var(--ink)' },
  '.cm-content': { fontFamily: 'var(--mono)', caretColor: 'var(--ink)', padding: '8px 0' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55' },
  '.cm-gutters': { backgroundColor: 'var(--sheet)', color: 'var(--faint)', border: 'none' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'transparent' },
  '&.cm-focused .cm-activeLine': { backgroundColor: 'var(--tint)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-cursor': { borderLeftColor: 'var(--accent)', borderLeftWidth: '2px' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--selected)' },
  '.cm-placeholder': { color: 'var(--faint)' },
  '.cm-tooltip': { backgroundColor: 'var(--raised)', color: 'var(--ink)', border: '1px solid var(--rule)', borderRadius: '8px', overflow: 'hidden', boxShadow: '0 8px 24px rgb(0 0 0 / 25%)' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]': { backgroundColor: 'var(--accent)', color: 'var(--on-accent)' },
  '.cm-panels': { backgroundColor: 'var(--raised)', color: 'var(--ink)' },
  '.cm-matchingBracket, &.cm-focused .cm-matchingBracket': { backgroundColor: 'var(--selected)' },
});

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword], color: 'var(--code-keyword)', fontWeight: '600' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--code-text)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--code-number)' },
  { tag: [tags.lineComment, tags.blockComment], color: 'var(--faint)', fontStyle: 'italic' },
  { tag: [tags.typeName, tags.standard(tags.name)], color: 'var(--code-type)' },
]);

export type Names = Record<string, Record<string, string[]>>;

const language = (names: Names, schema: string): Extension =>
  sqlLanguage({ dialect: MySQL, schema: names, defaultSchema: schema || undefined, upperCaseKeywords: true });

export interface Handle { text: () => string; selection: () => string; position: () => number; replace: (text: string) => void; focus: () => void }
interface Props { document: string; names: Names; schema: string; onChange: (text: string) => void; onRun: () => void; onRunOne: () => void; handle: { current: Handle | null } }

export function Editor({ document: text, names, schema, onChange, onRun, onRunOne, handle }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const grammar = useRef(new Compartment());
  const calls = useRef({ onChange, onRun, onRunOne });
  calls.current = { onChange, onRun, onRunOne };
  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const root = element.shadowRoot ?? element.attachShadow({ mode: 'open' });
    const created = new EditorView({
      root, parent: root,
      state: EditorState.create({
        doc: text,
        extensions: [
          Prec.highest(keymap.of([{ key: 'Mod-Enter', run: () => { calls.current.onRun(); return true; } }, { key: 'Shift-Enter', run: () => { calls.current.onRunOne(); return true; } }])),
          lineNumbers(), history(), drawSelection(), indentOnInput(), bracketMatching(), closeBrackets(), autocompletion(), highlightActiveLine(), highlightSelectionMatches(),
          keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...completionKeymap]),
          grammar.current.of(language(names, schema)), theme, syntaxHighlighting(colours), placeholder('Type SQL, then Ctrl-Enter'),
          EditorView.lineWrapping, EditorView.contentAttributes.of({ 'aria-label': 'SQL', spellcheck: 'false', tabindex: '0' }),
          EditorView.updateListener.of((update) => { if (update.docChanged) calls.current.onChange(update.state.doc.toString()); }),
        ],
      }),
    });
    view.current = created;
    handle.current = {
      text: () => created.state.doc.toString(),
      selection: () => created.state.sliceDoc(created.state.selection.main.from, created.state.selection.main.to),
      position: () => created.state.selection.main.head,
      replace: (next) => created.dispatch({ changes: { from: 0, to: created.state.doc.length, insert: next } }),
      focus: () => created.focus(),
    };
    return () => { created.destroy(); view.current = null; handle.current = null; };
  }, []);
  useEffect(() => { view.current?.dispatch({ effects: grammar.current.reconfigure(language(names, schema)) }); }, [names, schema]);
  return <div class="editor" ref={host} />;
}
