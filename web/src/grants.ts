// Statements about privileges.

/** The REVOKE that undoes a line of SHOW GRANTS; nothing where that is not one statement. */
export function revokeOf(grant: string): string {
  const found = /^GRANT (.+?) (ON .+ )?TO (.+?)( WITH (?:GRANT|ADMIN) OPTION)?$/s.exec(grant);
  if (!found || /^USAGE$/i.test(found[1])) return '';
  return `REVOKE ${found[1]}${found[4]?.includes('GRANT') ? ', GRANT OPTION' : ''} ${found[2] ?? ''}FROM ${found[3]}`;
}
