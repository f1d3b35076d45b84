// Dark or light: as the system says, until the reader chooses.
import { signal } from '@preact/signals';

export type Theme = 'dark' | 'light';
const dark = matchMedia('(prefers-color-scheme: dark)');
const kept = localStorage.getItem('squall.theme');
export const theme = signal<Theme>(kept === 'dark' || kept === 'light' ? kept : dark.matches ? 'dark' : 'light');

const apply = () => { document.documentElement.dataset.theme = theme.value; };
dark.addEventListener('change', () => { if (!localStorage.getItem('squall.theme')) { theme.value = dark.matches ? 'dark' : 'light'; apply(); } });
apply();

export function flip(): void {
  theme.value = theme.value === 'dark' ? 'light' : 'dark';
  localStorage.setItem('squall.theme', theme.value);
  apply();
}
