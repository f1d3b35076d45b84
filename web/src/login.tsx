import { useState } from 'preact/hooks';
import { login } from './api';
import { Failure } from './ui';

export function Login() {
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    setError(undefined);
    try {
      await login(String(form.get('user')), String(form.get('password')));
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return (
    <main class="login">
      <form onSubmit={submit}>
        <h1><img src="favicon.svg" alt="" width="44" height="44" />Squall</h1>
        <p class="muted">Log in with an account of this server.</p>
        <label class="field"><span>User</span><input name="user" autocomplete="username" autofocus required spellcheck={false} autocapitalize="none" /></label>
        <label class="field"><span>Password</span><input name="password" type="password" autocomplete="current-password" /></label>
        <Failure error={error} />
        <button type="submit" class="button primary" disabled={busy}>{busy ? 'Logging in…' : 'Log in'}</button>
      </form>
    </main>
  );
}
